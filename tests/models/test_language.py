"""Language models of transformers: batched answers and log probabilities equal those one by one."""

import sys

import numpy as np
import pytest

import eblime
from eblime.models.language import TransformersModel, as_language_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT = (
    "The tower opened in 1889. It stands in Paris, on the Seine. Answer from the notes: when did "
    "it open? Who built the bridge over the river? The café is closed. user assistant"
)
PROMPTS = [
    "The tower opened in 1889. When did it open?",
    "When?",
    "It stands in Paris, on the Seine. Answer from the notes: who built the bridge?",
    "The café is closed. Answer from the notes",
]
ANSWER = "It opened in 1889, on the river."
TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}> {{ message.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def make_tokenizer(template=None):
    """A small byte-level tokenizer, learned from a few sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.chat_template = template
    return fast


def make_network(kind="gpt2"):
    """A small network with random weights, the same every time."""
    torch.manual_seed(0)
    settings = {"vocab_size": 320, "bos_token_id": 0, "eos_token_id": 0}
    if kind == "gpt2":
        config = transformers.GPT2Config(
            n_embd=32, n_layer=2, n_head=2, n_positions=160, initializer_range=0.4, **settings
        )
        return transformers.GPT2LMHeadModel(config).eval()
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=160,
        initializer_range=0.4,
        **settings,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def network(request):
    """Absolute and rotary positions."""
    return make_network(request.param)


def slow_log_probs(network, ids, wanted):
    """The definition: one prompt, no padding, the softmax of every logit."""
    with torch.no_grad():
        logits = network(torch.tensor([[*ids, *wanted]])).logits[0]
    logs = logits.double().log_softmax(dim=-1)
    return np.array([float(logs[len(ids) + k - 1, token]) for k, token in enumerate(wanted)])


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_log_probs_equal_those_of_one_prompt_at_a_time(network, template):
    """Padding, batches and the logits that are left out change nothing."""
    tokenizer = make_tokenizer(template)
    model = TransformersModel(network, tokenizer)
    wanted = tokenizer(ANSWER)["input_ids"]
    found = model.token_log_probs(PROMPTS, ANSWER)
    text = "<user> {}<end><assistant> " if template else "{}"

    for prompt, values in zip(PROMPTS, found, strict=True):
        ids = tokenizer(text.format(prompt))["input_ids"]
        np.testing.assert_allclose(values, slow_log_probs(network, ids, wanted), atol=2e-5)


def test_small_batches_change_nothing(monkeypatch, network):
    """The prompts are sorted by length and cut into batches; the order of the answers stays."""
    model = TransformersModel(network, make_tokenizer(), max_new_tokens=12)
    whole, texts = model.token_log_probs(PROMPTS, ANSWER), model.generate(PROMPTS[:2])
    monkeypatch.setattr("eblime.models.language._TOKENS_CPU", 100)

    np.testing.assert_allclose(model.token_log_probs(PROMPTS, ANSWER), whole, atol=2e-5)
    monkeypatch.setattr("eblime.models.language._LOGITS", 1)
    np.testing.assert_allclose(model.token_log_probs(PROMPTS, ANSWER), whole, atol=2e-5)
    assert model.generate(PROMPTS[:2]) == texts


def test_greedy_answers_equal_those_of_one_prompt_at_a_time(network):
    """Each new token is the most probable one, up to the end or the most tokens."""
    tokenizer = make_tokenizer()
    found = TransformersModel(network, tokenizer, max_new_tokens=12).generate(PROMPTS)

    for prompt, text in zip(PROMPTS, found, strict=True):
        ids = tokenizer(prompt)["input_ids"]
        start = len(ids)
        while len(ids) < start + 12 and (len(ids) == start or ids[-1] != tokenizer.eos_token_id):
            with torch.no_grad():
                ids.append(int(network(torch.tensor([ids])).logits[0, -1].argmax()))
        assert text == tokenizer.decode(ids[start:], skip_special_tokens=True)


def test_a_temperature_draws_tokens():
    """The same prompt gets several answers."""
    model = TransformersModel(make_network(), make_tokenizer(), max_new_tokens=12, temperature=2.0)

    assert len(set(model.generate(PROMPTS[:1] * 8))) > 1


def test_settings_of_the_model_for_draws_are_not_warned_about(capfd):
    """A model whose own settings draw tokens is greedy here, without a warning."""
    network = make_network()
    network.generation_config.update(do_sample=True, temperature=0.6, top_p=0.9, top_k=5)
    model = TransformersModel(network, make_tokenizer(), max_new_tokens=3)

    assert model.generate(PROMPTS) == model.generate(PROMPTS)
    assert "generation flags" not in capfd.readouterr().err
    assert network.generation_config.temperature == 0.6


def test_spans_are_those_of_the_tokens():
    """Together the spans are the answer, and there is one for each log probability."""
    model = TransformersModel(make_network(), make_tokenizer())
    spans = model.token_spans(ANSWER)

    assert "".join(ANSWER[start:end] for start, end in spans) == ANSWER
    assert len(spans) == len(model.token_log_probs(["When?"], ANSWER)[0]) > 3
    assert model.count_tokens(ANSWER) == len(spans)


def test_the_network_keeps_its_mode_and_gives_its_precision():
    """A network in training mode is scored without dropout, and trains on afterwards."""
    network, tokenizer = make_network(), make_tokenizer()
    expected = TransformersModel(network, tokenizer).token_log_probs(PROMPTS, ANSWER)
    network.train()
    found = TransformersModel(network, tokenizer).token_log_probs(PROMPTS, ANSWER)

    np.testing.assert_array_equal(found, expected)
    assert network.training
    half = TransformersModel(network.to(torch.bfloat16), tokenizer).token_log_probs(PROMPTS, ANSWER)
    assert 0 < np.abs(np.array(half) - expected).max() < 0.5


def test_an_empty_prompt_is_a_prompt():
    """The answer then follows the token of the beginning, or of the end."""
    network, tokenizer = make_network(), make_tokenizer()
    (found,) = TransformersModel(network, tokenizer).token_log_probs([""], ANSWER)

    expected = slow_log_probs(network, [tokenizer.eos_token_id], tokenizer(ANSWER)["input_ids"])
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_what_cannot_work_is_refused():
    """Each with a sentence that says what to do."""
    network, tokenizer = make_network(), make_tokenizer()
    model = as_language_model((network, tokenizer))

    assert model.context == 160
    with pytest.raises(ValueError, match="`answer` must not be empty"):
        model.token_log_probs(["When?"], "")
    with pytest.raises(ValueError, match="chat template"):
        TransformersModel(network, tokenizer, chat=True)
    with pytest.raises(TypeError, match="`tokenizer` must be a fast tokenizer"):
        as_language_model((network, str))
    with pytest.raises(TypeError, match="`model` must be a causal language model"):
        as_language_model((tokenizer, tokenizer))
    with pytest.raises(TypeError, match=r"pair \(model, tokenizer\) of transformers"):
        as_language_model(network)
    assert repr(model).startswith("TransformersModel(GPT2LMHeadModel, ")


def test_a_folder_is_loaded(tmp_path):
    """`save_pretrained` and the path of the folder."""
    network, tokenizer = make_network(), make_tokenizer(TEMPLATE)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = as_language_model(tmp_path)

    expected = TransformersModel(network, tokenizer).token_log_probs(PROMPTS, ANSWER)
    np.testing.assert_allclose(loaded.token_log_probs(PROMPTS, ANSWER), expected, atol=1e-6)


def test_a_cache_needs_a_name_for_a_network(tmp_path):
    """With one, the second explanation asks about one stored answer again, and nothing else."""
    model = (make_network(), make_tokenizer())
    notes = ["The tower opened in 1889.", "It stands in Paris.", "The café is closed."]
    explainer = eblime.PromptExplainer(model, notes)
    with pytest.raises(TypeError, match="needs `model_id`"):
        explainer.explain("When?", answer=ANSWER, cache=tmp_path / "llm.db")
    cache = eblime.AnswerCache(tmp_path / "llm.db", model_id="tiny")
    first, again = (explainer.explain("When?", answer=ANSWER, cache=cache) for _ in range(2))

    assert first.provenance["model_calls"] == 8
    assert again.provenance["model_calls"] == 1
    np.testing.assert_array_equal(again.posterior.mean, first.posterior.mean)


def test_the_installation_is_named_where_it_is_missing(monkeypatch, tmp_path):
    """The extra that has transformers."""
    monkeypatch.setitem(sys.modules, "transformers", None)

    with pytest.raises(ImportError, match=r"pip install 'eblime\[llm\]'"):
        as_language_model(tmp_path)


def test_messages_go_through_the_chat_template():
    """With their roles; a tokenizer without a template is refused."""
    chat = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "When?"}]
    network, tokenizer = make_network(), make_tokenizer(TEMPLATE)
    model = TransformersModel(network, tokenizer, max_new_tokens=5)
    (found,) = model.token_log_probs([chat], ANSWER)
    ids = tokenizer("<system> Answer.<end><user> When?<end><assistant> ")["input_ids"]
    wanted = tokenizer(ANSWER)["input_ids"]

    np.testing.assert_allclose(found, slow_log_probs(network, ids, wanted), atol=2e-5)
    explainer = eblime.PromptExplainer((network, make_tokenizer()), ["a", "b"], system="Answer.")
    with pytest.raises(eblime.ModelError, match="chat_template is not set"):
        explainer.explain("When?")
