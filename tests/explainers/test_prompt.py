"""`PromptExplainer`: sources, answers and their parts."""

import asyncio
import hashlib
import inspect
import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import eblime
from eblime.models.language import ServerModel
from eblime.models.likelihood import similarity

NOTES = [
    "The tower opened in 1889.",
    "It is in Paris.",
    "Paris lies on the Seine.",
    *(f"Note {k} is about cats." for k in range(5)),
]
ANSWER = "It opened in 1889. It is in Paris."


class Parrot:
    """A language model that finds words likely if they are in the prompt."""

    context = 100

    def __init__(self):
        self.scored, self.generated = [], []

    def generate(self, prompts):
        """The answer, without the year if no source has it."""
        self.generated += prompts
        return [ANSWER if "1889" in p else "It is in Paris." for p in prompts]

    def token_spans(self, answer):
        """Words with the space before them."""
        return [match.span() for match in re.finditer(r"\s*\S+", answer)]

    def token_log_probs(self, prompts, answer):
        """A word that is in the prompt is likely."""
        self.scored += prompts
        words = [answer[a:b].strip(" .") for a, b in self.token_spans(answer)]
        return [np.array([-0.1 if word in p else -2.0 for word in words]) for p in prompts]

    def count_tokens(self, text):
        """Words."""
        return len(text.split())


@pytest.fixture
def parrot():
    """A language model."""
    return Parrot()


def top(e):
    """The number of the most important source."""
    return int(e.posterior.order()[0])


def test_hidden_sources_are_left_out_and_the_others_keep_their_order():
    """What the model reads, for all masks of three sources."""
    seen = set()

    def score(prompts):
        seen.update(prompts)
        return [len(p) for p in prompts]

    template = "Use {curly} notes.\n{sources}\nQ: {question}"
    eblime.PromptExplainer(score, ["a {question}", "b", "c"], template, separator="; ").explain("?")

    assert "Use {curly} notes.\na {question}; c\nQ: ?" in seen
    assert "Use {curly} notes.\n\nQ: ?" in seen
    assert len(seen) == 8


@pytest.mark.parametrize(
    ("sources", "segmentation", "names"),
    [
        (["x", "y"], "paragraph", ["source 1 'x'", "source 2 'y'"]),
        ({"page 12": "x", "page 9": "y"}, "paragraph", ["page 12", "page 9"]),
        ("One.\nTwo.\n\nThree.", "paragraph", ["paragraph 1 'One. Two.'", "paragraph 2 'Three.'"]),
        ("One. Two!  Three", "sentence", [f"sentence {k}" for k in (1, 2, 3)]),
        ("User: hi\nthere\nBot: yes\nUser: at 5:30", "turn", ["turn 1 'User: hi there'", "turn 2"]),
        ([{"role": "user", "content": "hi"}], "turn", ["turn 1 'user: hi'"]),
    ],
)
def test_sources_and_their_names(sources, segmentation, names):
    """Lists, dictionaries, messages, and texts that are cut without losing a character."""
    explainer = eblime.PromptExplainer(
        lambda prompts: [len(p) for p in prompts],
        sources,
        "{sources}|{question}",
        segmentation=segmentation,
    )
    scene = explainer.explain("?").scene

    assert all(found.startswith(name) for found, name in zip(scene.features, names, strict=False))
    if isinstance(sources, str):
        assert scene.text == f"{sources}|?"
        assert scene.n_features == (2 if segmentation == "paragraph" else 3)
    assert "".join(scene.pieces) == scene.text
    assert len(scene.pieces) == len(scene.owners)


def test_editors_list_the_options_of_a_call():
    """Those of the other explainers by name, and the answer."""
    own, common = (
        inspect.signature(owner.explain).parameters
        for owner in (eblime.PromptExplainer, eblime.TextExplainer)
    )

    assert {*own} == {*common, "answer"}


def test_a_whole_prompt_needs_no_question():
    """The question is one of the sentences."""
    whole = "Paris is a city. The tower opened in 1889. When did the tower open?"
    score = lambda prompts: [float("1889" in p) for p in prompts]  # noqa: E731
    e = eblime.PromptExplainer(score, whole, "{sources}", segmentation="sentence").explain()

    assert top(e) == 1


def test_the_importance_is_the_mean_over_all_sets_of_sources():
    """No kernel: an interaction counts half, whatever is near the whole prompt."""
    score = lambda prompts: [float("a" in p and "b" in p) for p in prompts]  # noqa: E731
    e = eblime.PromptExplainer(score, ["a", "b", "c"], "{sources}").explain()

    assert_allclose(e.posterior.mean, [0.5, 0.5, 0], atol=1e-3)
    assert "all counting the same" in e.estimand


def test_the_model_answers_once_and_its_sentences_are_targets_of_the_same_calls(parrot):
    """One call for the answer, 66 for the scores, whatever the number of targets."""
    explainer = eblime.PromptExplainer(parrot, NOTES)
    found = explainer.explain_targets("When did it open?")

    assert len(parrot.generated) == 1
    assert (
        len(parrot.scored) == len(set(parrot.scored)) <= 66
    )  # with all sources, with none, and masks
    assert [e.label for e in found.values()] == [
        f"answer '{ANSWER}'",
        "sentence 1 'It opened in 1889.'",
        "sentence 2 'It is in Paris.'",
    ]
    assert found[0].scene.answer == ANSWER
    assert top(found[1]) == 0
    assert top(found[2]) == 1
    assert "top_classes" not in found[0].provenance


def test_a_target_may_be_any_part_of_the_answer(parrot):
    """By its text or by the number of its sentence; the whole by default."""
    explainer = eblime.PromptExplainer(parrot, NOTES)
    e = explainer.explain("When?", "1889", answer=ANSWER)

    assert e.label == "part '1889'"
    assert top(e) == 0
    assert parrot.generated == []
    assert explainer.explain("When?", 2, answer=ANSWER).label == "sentence 2 'It is in Paris.'"
    assert explainer.explain("When?", answer=ANSWER).label.startswith("answer")
    with pytest.raises(ValueError, match="start and end; got 'Rome'"):
        explainer.explain("When?", "Rome", answer=ANSWER)


def test_scores_of_an_answer(parrot):
    """The mean, the sum and the logit of log probabilities."""
    settings = {"model": parrot, "sources": NOTES}
    predictions = {
        score: eblime.PromptExplainer(**settings, score=score)
        .explain("?", answer="In Paris")
        .prediction
        for score in ("mean", "total", "logit")
    }

    total = -2.1
    assert_allclose(predictions["total"], total)
    assert_allclose(predictions["mean"], total / 2)
    assert_allclose(predictions["logit"], total - np.log1p(-np.exp(total)))


@pytest.mark.parametrize("score", ["similarity", lambda new, answer: float(new == answer)])
def test_new_answers_are_compared_with_the_first(parrot, score):
    """Sampling makes them vary, so that all masks of few sources still leave an interval."""
    explainer = eblime.PromptExplainer(parrot, NOTES[:3], score=score)
    found = explainer.explain_targets("When did it open?")
    low, high = found[0].posterior.interval().T

    assert parrot.scored == []
    assert found[0].prediction == 1
    assert top(found[0]) == 0
    assert not found[0].exhaustive
    assert (high > low).all()
    assert_allclose(found[2].posterior.mean, 0, atol=1e-9)  # said with any source


def test_answers_are_continued_saved_and_remembered(parrot, tmp_path):
    """Files keep the answer and its parts, and nothing is asked twice."""
    cache = eblime.AnswerCache(tmp_path / "llm.db", model_id="parrot", verify=0)
    explainer = eblime.PromptExplainer(parrot, NOTES, cache=cache)
    e = explainer.explain("When?", 1, answer=ANSWER)
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))
    again = explainer.explain("When?", 1, answer=ANSWER)
    more = loaded.more(10, explainer=explainer, x="When?")

    assert loaded.scene.spans == e.scene.spans
    assert json.loads(loaded.to_json())["answer"] == ANSWER
    assert loaded.to_frame()["text"][0] in NOTES
    assert again.provenance["model_calls"] == 0
    assert_allclose(again.posterior.mean, e.posterior.mean)
    assert more.posterior.n_masks == 76
    assert len(parrot.scored) <= 76
    with pytest.raises(ValueError, match="must be the explained input"):
        loaded.more(10, explainer=explainer, x="Where?")


def test_runs_explain_many_questions(parrot, tmp_path):
    """Each with the answer of the model, or its own."""
    explainer = eblime.PromptExplainer(parrot, NOTES)
    questions = pd.DataFrame({"question": ["When?", "Where?"], "answer": [np.nan, "Paris"]})
    run = eblime.explain_many(explainer, questions, tmp_path / "run", workers=1, progress=False)

    found = [run.explanation(k) for k in range(2)]

    assert [e.scene.answer for e in found] == [ANSWER, "Paris"]
    assert [e.label for e in found] == ["answer", "answer"]
    assert top(found[1]) in (1, 2)


def test_a_limit_of_calls_decides_the_design():
    """No more masks are chosen than can be asked."""
    explainer = eblime.PromptExplainer(
        lambda prompts: [len(p) for p in prompts], list("abcdefghij")
    )
    e = explainer.explain("?", calls=eblime.Calls(max_calls=14))

    assert e.provenance["model_calls"] <= 14
    assert len(e.masks) == 14


def test_the_call_that_writes_the_answer_counts(parrot):
    """It is one of those that are allowed."""
    explainer = eblime.PromptExplainer(parrot, NOTES)

    e = explainer.explain("When?", calls=eblime.Calls(max_calls=20))

    assert e.provenance["model_calls"] <= 20
    with pytest.raises(ValueError, match="`max_calls` must be at least"):
        explainer.explain("When?", calls=eblime.Calls(max_calls=2))


def test_provenance_counts_the_call_that_writes_the_answer(parrot):
    """As it does for `max_calls`."""
    sent = []

    class Counting(Parrot):
        def generate(self, prompts):
            sent.extend(prompts)
            return ["in Paris."]

        def token_log_probs(self, prompts, answer):
            sent.extend(prompts)
            return [np.log([0.5, 0.9]) for _ in prompts]

    e = eblime.PromptExplainer(Counting(), NOTES).explain("When?")

    assert e.provenance["model_calls"] == len(sent)


def test_a_cache_keeps_the_answer(parrot, tmp_path):
    """A model that would write another one is not asked for it again."""
    written = iter(["It is 1889, né?\U0001f600", "Another one."])

    class Fickle(Parrot):
        def generate(self, prompts):
            return [next(written)]

    cache = eblime.AnswerCache(tmp_path / "answers.db", model_id="fickle")
    explainer = eblime.PromptExplainer(Fickle(), NOTES, cache=cache)
    first, again = explainer.explain("When?"), explainer.explain("When?")

    assert first.scene.answer == again.scene.answer == "It is 1889, né?\U0001f600"
    assert again.provenance["model_calls"] == 1
    assert explainer.explain("Where?").scene.answer == "Another one."


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"sources": []}, ValueError, "`sources` must have at least one source; it is empty"),
        ({"sources": " "}, ValueError, "that are not empty; source 1 is ' '"),
        ({"sources": ["a", " "]}, ValueError, "that are not empty; source 2 is ' '"),
        ({"sources": ["a", 3]}, TypeError, "source 2 is 3"),
        ({"sources": 3}, TypeError, "`sources` must be a list of texts"),
        ({"sources": pd.DataFrame({"text": ["a", "b"]})}, TypeError, "got DataFrame"),
        ({"sources": [{"content": "a"}]}, TypeError, 'messages with a "role" and a "content"'),
        ({"prompt": "Answer {question}"}, ValueError, r"must contain \{sources\} once"),
        ({"prompt": 3}, TypeError, "`prompt` must be a string"),
        ({"segmentation": "page"}, ValueError, "`segmentation` must be one of 'sentence'"),
        ({"score": "likely"}, ValueError, "`score` must be one of 'mean'"),
        ({"separator": 3}, TypeError, "`separator` must be a string; got int"),
    ],
)
def test_settings_that_cannot_work_are_refused(parrot, settings, error, message):
    """Before anything is asked."""
    with pytest.raises(error, match=message):
        eblime.PromptExplainer(**{"model": parrot, "sources": NOTES} | settings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": ""}, "`question` must not be empty"),
        ({"x": "When?", "answer": " "}, "`answer` must not be empty"),
        ({"x": "When?" + " why" * 80}, "it has 120. The longest of its 8 sources"),
        ({"x": {"text": "When?"}}, 'A row must have a column "question"; got text'),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_before_calls(parrot, given, message):
    """A prompt that is too long says how long it is, and what the limit is."""
    with pytest.raises(ValueError, match=message):
        eblime.PromptExplainer(parrot, NOTES).explain(**given)

    assert parrot.scored == parrot.generated == []


def test_an_empty_answer_of_the_model_is_an_error(parrot, monkeypatch):
    """There is nothing to explain."""
    monkeypatch.setattr(parrot, "generate", lambda prompts: [" "] * len(prompts), raising=False)
    with pytest.raises(eblime.ModelError, match="is empty; give `answer`"):
        eblime.PromptExplainer(parrot, NOTES).explain("When?")


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("a.json", '["It opened in 1889.", "In Paris."]', ["source 1", "source 2"]),
        ("a.json", '[{"text": "1889"}, {"text": "Paris", "page": 2}]', ["source 1", "source 2"]),
        ("a.json", '{"guide": "1889", "map": "Paris"}', ["guide", "map"]),
        (
            "a.jsonl",
            '"It opened\\nin 1889."\n\n{"text": "Paris\u2028"}\n',
            ["source 1", "source 2"],
        ),
        ("a.jsonl", '\ufeff{"role": "user", "content": "Hi"}', ["turn 1"]),
        ("a.txt", "It opened in 1889.\n\nIn Paris.", ["paragraph 1", "paragraph 2"]),
    ],
)
def test_sources_of_a_file(tmp_path, name, content, names):
    """A list of texts or of objects with a "text", names and texts, a chat, or one text."""
    (tmp_path / name).write_text(content, encoding="utf8")
    explainer = eblime.PromptExplainer(lambda prompts: [len(p) for p in prompts], tmp_path / name)
    e = explainer.explain("When?", n_masks=4)

    assert [feature.split(" '")[0] for feature in e.features] == names


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[1,", r"`sources`: '.*a.json' must be JSON: Expecting value"),
        ("a.jsonl", '"a"\n{', r"`sources`: '.*a.jsonl', line 2, must be JSON"),
        ("a.json", '"a text"', "must hold a list, or an object of texts"),
        ("a.json", "", "must hold a list"),
        ("a.json", '[{"page": 2}]', 'objects with a "text"'),
        ("a.json", "[[1]]", "source 1 is"),
    ],
)
def test_files_that_are_no_sources_are_refused(tmp_path, name, content, message):
    """The message names the file or the source."""
    (tmp_path / name).write_text(content, encoding="utf8")
    with pytest.raises((TypeError, ValueError), match=message):
        eblime.PromptExplainer(lambda prompts: [0.0] * len(prompts), tmp_path / name)


def fetch(model, path, data):
    """The reply of a server whose texts and log probabilities depend on all that it is sent."""
    found = json.loads(data)
    if "prompt_logprobs" in found:
        tokens = re.findall(r"\s?\w+", found["messages"][-1]["content"])
        shown = [
            {"1": {"logprob": -digits(data, k), "decoded_token": token}}
            for k, token in enumerate(tokens)
        ]
        return {"choices": [{"message": {}}], "prompt_logprobs": shown}
    words = " ".join(f"{digits(data, k):.0f}" for k in range(40))
    return {"choices": [{"message": {"content": words}}]}


def digits(data, k):
    """A number from 0 to 9 that depends on some bytes."""
    return hashlib.sha256(data + bytes([k])).digest()[0] / 255 * 9


def judge(name, factor):
    """A function of a name that compares answers; all have the same code."""

    def compare(new, answer):
        return factor * similarity(new, answer)

    compare.model_id = name
    return compare


JUDGES = [
    {"score": "mean"},
    {"score": "total"},
    {"score": "logit"},
    {"score": "similarity"},
    {"score": "similarity", "separator": "; "},
    {"score": "similarity", "prompt": "{sources} {question}!"},
    *({"score": judge(f"judge {k}", k)} for k in range(2, 6)),
    *({"score": "similarity", "max_new_tokens": k} for k in (1, 2, 300)),
    *({"score": "similarity", "temperature": k} for k in (0.5, 1.0)),
    *({"score": "similarity", "options": {"seed": k}} for k in range(3)),
    {"score": "similarity", "options": {"top_p": 0.5}},
    {"score": "similarity", "model": "other"},
]


def test_judges_and_options_never_share_answers(tmp_path, monkeypatch):
    """Twenty kinds of scores of one model and one cache: each finds its own answers alone."""
    monkeypatch.setattr(ServerModel, "_fetch", fetch)
    found = {}
    for shared in (False, True, True):
        for k, settings in enumerate(JUDGES):
            own = {n: settings[n] for n in settings if n in ServerModel.__dataclass_fields__}
            of_model = {"model": "tiny", **own}
            rest = {name: value for name, value in settings.items() if name not in own}
            model = ServerModel("http://127.0.0.1:9/v1", key_name=None, **of_model)
            cache = eblime.AnswerCache(tmp_path / "a.db", model_id="a") if shared else None
            explainer = eblime.PromptExplainer(model, NOTES[:3], cache=cache, **rest)
            scores = explainer.explain("Where?", answer="3 5 7 Paris").scores
            assert_allclose(scores, found.setdefault(k, scores), err_msg=str(settings))

    assert len({tuple(scores) for scores in found.values()}) == len(JUDGES)


def test_a_judge_without_a_name_is_refused_with_a_cache_before_any_call(parrot, tmp_path):
    """Two lambdas have the same name, and may have the same code."""
    cache = eblime.AnswerCache(tmp_path / "a.db", model_id="parrot")
    explainer = eblime.PromptExplainer(parrot, NOTES, score=lambda new, old: 1.0, cache=cache)

    with pytest.raises(TypeError, match="`cache` needs a name for the function `score`"):
        explainer.explain("When?")
    assert parrot.generated == []


# --- chats ----------------------------------------------------------------------------------------

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {
    "id": "a",
    "type": "function",
    "function": {"name": "find", "arguments": '{"q": "{sources}"}'},
}


def seen_by(explainer, question="When?", **settings):
    """All prompts that a function got."""
    seen = []

    def score(prompts):
        seen.extend(prompts)
        return [float("1889" in str(prompt)) for prompt in prompts]

    e = eblime.PromptExplainer(score, **explainer).explain(question, **settings)
    return seen, e


def test_messages_keep_roles_images_and_calls_of_tools():
    """Only texts are filled in; sources with quotation marks and braces are texts, too."""
    sources = ["It opened in 1889.", 'Say "{question}"\n\\ {sources}']
    prompt = [
        {"role": "system", "content": "Use the notes."},
        {"role": "user", "content": [{"type": "text", "text": "Look: {sources}"}, PICTURE]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "nothing"},
        {"role": "user", "content": "{question}"},
    ]
    seen, e = seen_by({"sources": sources, "prompt": prompt, "separator": "; "})
    whole = max(seen, key=lambda messages: len(str(messages)))
    shown = {messages[1]["content"][0]["text"] for messages in seen}

    assert whole[:1] == prompt[:1]
    assert whole[1] == {
        "role": "user",
        "content": [{"type": "text", "text": f"Look: {'; '.join(sources)}"}, PICTURE],
    }
    assert whole[2:4] == prompt[2:4]
    assert whole[4] == {"role": "user", "content": "When?"}
    assert shown == {"Look: ", *(f"Look: {source}" for source in (*sources, "; ".join(sources)))}
    assert top(e) == 0
    assert "".join(e.scene.pieces) == e.scene.text
    assert "user: Look: It opened in 1889.; Say" in e.scene.text
    assert "[image_url]" in e.scene.text
    assert prompt[1]["content"][0]["text"] == "Look: {sources}"


def test_results_of_tools_are_sources(tmp_path):
    """Each in its own message, which stays where it is hidden."""
    prompt = [
        {"role": "user", "content": "{question}"},
        {"role": "tool", "tool_call_id": "a", "name": "search", "content": "It opened in 1889."},
        {"role": "assistant", "content": "Hm."},
        {"role": "tool", "tool_call_id": "b", "content": "Cats."},
    ]
    seen, e = seen_by({"prompt": prompt})
    loaded = eblime.load(e.save(tmp_path / "e.eblime"))

    assert e.features == ["search result 1", "tool result 2"]
    assert {tuple(m["role"] for m in messages) for messages in seen} == {
        ("user", "tool", "assistant", "tool")
    }
    assert {(messages[1]["content"], messages[3]["content"]) for messages in seen} == {
        (first, second) for first in ("", "It opened in 1889.") for second in ("", "Cats.")
    }
    assert top(e) == 0
    assert loaded.scene.text == e.scene.text
    assert loaded.scene.owners == [-1, 0, -1, 1, -1]


def test_each_source_may_have_its_own_place():
    """By its name in braces; the order is that of the prompt."""
    template = "Contract: {contract}\nMail: {mail}\nQ: {question}"
    sources = {"mail": "Hi", "contract": "1889"}
    seen, e = seen_by({"sources": sources, "prompt": template})

    assert e.features == ["contract", "mail"]
    assert set(seen) == {
        f"Contract: {a}\nMail: {b}\nQ: When?" for a in ("", "1889") for b in ("", "Hi")
    }
    with pytest.raises(ValueError, match="or each source once by its name"):
        eblime.PromptExplainer(len, sources, "{contract}{contract}{mail}")


def test_a_system_message_makes_a_chat():
    """The prompt is then the message of a user."""
    seen, _ = seen_by({"sources": ["1889", "b"], "system": "Be brief."})

    assert {len(messages) for messages in seen} == {2}
    assert seen[0][0] == {"role": "system", "content": "Be brief."}
    assert seen[0][1] == {"role": "user", "content": "1889\n\nb\n\nWhen?"}


def test_texts_alone_are_no_chat():
    """A function gets strings if the user gave a string."""
    seen, _ = seen_by({"sources": ["a", "b"]})

    assert all(isinstance(prompt, str) for prompt in seen)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prompt": [{"content": "{sources}"}]}, 'messages with a "role"'),
        ({"prompt": ["{sources}"]}, 'messages with a "role"'),
        ({"prompt": [{"role": "user", "content": "Hi"}]}, r"must contain \{sources\} once"),
        ({"system": 3}, "`system` must be a string"),
        ({"prompt": [{"role": "user", "content": "{sources}", "x": {1}}]}, "JSON"),
    ],
)
def test_messages_that_cannot_be_sent_are_refused(settings, message):
    """Before anything is asked."""
    with pytest.raises((TypeError, ValueError), match=message):
        eblime.PromptExplainer(len, NOTES, **settings)


# --- new answers ----------------------------------------------------------------------------------


def test_several_answers_to_each_prompt_are_averaged():
    """Their scatter widens intervals less than that of one answer does."""
    rng, asked = np.random.default_rng(0), []

    class Moody(Parrot):
        def generate(self, prompts):
            asked.extend(prompts)
            return [ANSWER if rng.random() < 0.3 + 0.5 * ("1889" in p) else "No." for p in prompts]

    widths, calls = [], []
    for samples in (1, 4):
        explainer = eblime.PromptExplainer(Moody(), NOTES, score="similarity", samples=samples)
        e = explainer.explain("When?", answer=ANSWER)
        widths.append(np.diff(e.posterior.interval()).mean())
        calls.append(e.provenance["model_calls"])

    assert calls == [66, 4 * 66]
    assert len(asked) == sum(calls)
    assert widths[1] < 0.75 * widths[0]


def test_calls_of_several_answers_are_limited(parrot):
    """Each answer is a call."""
    explainer = eblime.PromptExplainer(parrot, NOTES, score="similarity", samples=3)
    e = explainer.explain("When?", calls=eblime.Calls(max_calls=100))

    assert 60 < e.provenance["model_calls"] <= 100
    assert len(parrot.generated) == e.provenance["model_calls"]


def test_functions_may_be_async(parrot):
    """Of the model and the judge; the numbers are the same."""

    class Later(Parrot):
        async def generate(self, prompts):
            await asyncio.sleep(0)
            return Parrot.generate(self, prompts)

        async def token_log_probs(self, prompts, answer):
            return Parrot.token_log_probs(self, prompts, answer)

    async def judge(new, answer):
        await asyncio.sleep(0)
        return similarity(new, answer)

    for score, same in (("mean", "mean"), (judge, "similarity")):
        found = eblime.PromptExplainer(Later(), NOTES[:3], score=score).explain("When?")
        plain = eblime.PromptExplainer(parrot, NOTES[:3], score=same).explain("When?")
        assert_allclose(found.scores, plain.scores)


def test_scores_that_vary_may_be_averaged():
    """Also those of a function."""
    asked = []
    score = lambda prompts: [asked.append(p) or float(len(asked) % 2) for p in prompts]  # noqa: E731
    e = eblime.PromptExplainer(score, ["a", "b"], samples=2).explain("?")

    assert set(e.scores) == {0.5}
    assert len(asked) == 2 * len(e.scores)


# --- what rests on all sources --------------------------------------------------------------------

COPIES = [f"The tower opened in the year 1889, as {who} said." for who in ("Ann", "Ben", "Eva")]


def copies_score(prompts):
    """One of the copies is enough."""
    return [-2.5 + 2.0 * ("1889" in p) + 0.1 * ("Paris" in p) for p in prompts]


@pytest.mark.parametrize("design", ["orthogonal", "bernoulli"])
def test_both_ends_are_reported_in_the_unit_of_the_score(parrot, design):
    """The score with all sources and with none was asked, whatever the design."""
    e = eblime.PromptExplainer(parrot, NOTES, design=design).explain("When?")
    total = eblime.PromptExplainer(parrot, NOTES, score="total").explain("When?", answer="1889")

    words = " ".join(str(e).split())
    assert_allclose(e.grounded, e.prediction - e.asked(np.zeros(8)))
    assert f"with none, a factor of exp({e.grounded:.2g}) = " in words
    assert "The score, the mean log probability of the answer's tokens, is -0.1" in words
    assert_allclose(total.grounded, 1.9)
    note = "is -0.1 with all sources and -2 with none, a factor of exp(1.9) = 6.7."
    assert f"The score, the log probability of the answer, {note}" in total.to_html()
    words = eblime.TextExplainer(lambda texts: [len(t) for t in texts])
    assert words.explain("a b").grounded is None


def test_both_ends_change_no_importance():
    """They have weight zero in the fit."""
    score = lambda prompts: [len(p) + 5.0 * ("1889" in p and "Paris" in p) for p in prompts]  # noqa: E731
    sources = [*NOTES, "x", "yy", "zzz"]
    e = eblime.PromptExplainer(score, sources).explain("?")
    inner = e.weights > 0
    alone = eblime.fit(e.masks[inner], e.scores[inner])

    assert inner.sum() == 64
    assert len(e.masks) == 66
    assert_allclose(e.posterior.mean, alone.mean, atol=0.02)


def test_copies_are_named_and_can_be_explained_as_one():
    """Alone each has a quarter of the effect; without all of them the score falls by 2."""
    sources = [*COPIES, "Cats sleep all day.", "Paris lies on the Seine."]
    e = eblime.PromptExplainer(copies_score, sources).explain("?")
    (note,) = [n for n in str(e).replace("\n", " ").split("Note: ") if "nearly equal" in n]
    grouped = eblime.PromptExplainer(copies_score, sources, groups="similar").explain("?")

    assert all(f"source {k} '" in note for k in (1, 2, 3))
    assert "source 4" not in note
    assert_allclose(e.grounded, 2.1)
    assert max(e.posterior.mean) < 0.6
    assert grouped.features[0].endswith("' and 2 like it")
    assert_allclose(grouped.posterior.mean, [2.0, 0.0, 0.1], atol=1e-6)
    assert "nearly equal" not in str(grouped)
    assert grouped.details()["text"][0] == "\n\n".join(COPIES)


# --- targets and sources --------------------------------------------------------------------------


def test_a_part_that_repeats_is_chosen_by_its_place(parrot):
    """A text that is there twice is refused, with the places."""
    answer = "Paris is in 1889. Paris is old."
    explainer = eblime.PromptExplainer(parrot, NOTES)

    assert explainer.explain("?", (18, 23), answer=answer).scene.spans[-1] == [18, 23]
    with pytest.raises(ValueError, match=r"got 'Paris', at \[\(0, 5\), \(18, 23\)\]"):
        explainer.explain("?", "Paris", answer=answer)
    for wrong in ((3, 99), (5, 5), (1, 2, 3), 1.5):
        with pytest.raises((TypeError, ValueError), match="`target"):
            explainer.explain("?", wrong, answer=answer)
    with pytest.raises(ValueError, match=r"number of one of 2 sentences; got 5"):
        explainer.explain("?", 5, answer=answer)
    assert len(parrot.scored) < 100


class Document:
    """As LangChain has them."""

    def __init__(self, text, **metadata):
        self.page_content, self.metadata = text, metadata


class Node:
    """As LlamaIndex has them."""

    def __init__(self, text):
        self.text, self.metadata = text, {}


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        ([Document("x", source="a.pdf"), Document("y")], ["source 1 'x'", "source 2 'y'"]),
        ([Node("x"), Node("y")], ["source 1 'x'", "source 2 'y'"]),
        ((text for text in "xy"), ["source 1 'x'", "source 2 'y'"]),
        (pd.Series(["x", "y"]), ["source 1 'x'", "source 2 'y'"]),
    ],
)
def test_documents_series_and_generators_are_sources(sources, names):
    """By what they have, without importing a package; a generator is read once."""
    explainer = eblime.PromptExplainer(lambda prompts: [len(p) for p in prompts], sources)

    for _ in range(2):
        scene = explainer.explain("?").scene
        assert scene.features == names
        assert scene.sources == ["x", "y"]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ("One paragraph alone.", "is one text with one paragraph: set another"),
        ({1: "x", "1": "y"}, "must have different names; '1' is there twice"),
    ],
)
def test_sources_that_tell_nothing_are_refused(sources, message):
    """A text that cannot be cut, and names that stand for two sources."""
    with pytest.raises(ValueError, match=message):
        eblime.PromptExplainer(lambda prompts: [0.0] * len(prompts), sources)


def test_a_client_is_refused_with_the_address_to_pass():
    """An object of a package for servers is no language model."""
    client = type("OpenAI", (), {"base_url": "https://x", "chat": None})()

    with pytest.raises(TypeError, match=r"the address of a server .*; got OpenAI"):
        eblime.PromptExplainer(client, NOTES)


def test_a_page_names_each_source_beside_its_text():
    """By its own name, or by its number, without its first words again."""
    sources = {"guide <b>": "It opened in 1889.", "map": "In Paris."}
    page = eblime.PromptExplainer(lambda ps: [len(p) for p in ps], sources).explain("?").to_html()
    numbered = eblime.PromptExplainer(lambda ps: [len(p) for p in ps], NOTES).explain("?").to_html()

    assert "<small>[guide &lt;b&gt;]</small> It opened in 1889.</mark>" in page
    assert "<small>[source 1]</small> The tower opened in 1889.</mark>" in numbered


def test_a_function_has_no_score_to_choose():
    """It returns the scores itself."""
    with pytest.raises(ValueError, match="`score` is for a language model"):
        eblime.PromptExplainer(lambda prompts: [0.0] * len(prompts), ["a", "b"], score="similarity")


def test_sources_may_come_with_each_question_also_in_a_chat():
    """The explainer then has none, and checks the prompt when they are there."""
    score = lambda prompts: [float("1889" in str(prompt)) for prompt in prompts]  # noqa: E731
    explainer = eblime.PromptExplainer(score, system="Be brief.")

    assert top(explainer.explain({"question": "When?", "sources": NOTES})) == 0


# --- citations ------------------------------------------------------------------------------------

SAID = "It opened in 1889. Dogs bark.\n\n- It is in Paris."


@pytest.fixture
def cited(parrot):
    """An answer with a sentence that no source has."""
    return eblime.PromptExplainer(parrot, NOTES).cite("When?", answer=SAID)


def test_each_sentence_is_cited_from_one_set_of_calls(parrot, cited):
    """The sources whose interval is above zero, with their shares of what is above zero."""
    explainer = eblime.PromptExplainer(parrot, NOTES)
    found = explainer.explain_targets("When?", answer=SAID)

    assert [s.text for s in cited.sentences] == [
        "It opened in 1889.",
        "Dogs bark.",
        "- It is in Paris.",
    ]
    for sentence, e in zip(cited.sentences, [found[1], found[2], found[3]], strict=True):
        mean, (low, _) = e.posterior.mean, e.posterior.interval().T
        shares = mean / mean.clip(0).sum() if mean.any() else mean
        expected = {e.features[j] for j in np.flatnonzero((low > 0) & (shares >= 0.05))}
        assert {one.source for one in sentence.sources} == expected
        assert_allclose(sentence.explanation.posterior.mean, mean)
        for one in sentence.sources:
            j = e.features.index(one.source)
            assert_allclose([one.mean, one.low, one.share], [mean[j], low[j], shares[j]])
            assert one.certainty > 0.975
            assert one.text == NOTES[j]
    assert cited.sentences[0].sources[0].text == NOTES[0]
    assert cited.sentences[1].sources == []
    assert cited.sentences[0].explanation.provenance["model_calls"] <= 66
    assert repr(cited) == f"Citations(3 sentences, {len(cited.sources)} of 8 sources)"


def test_citations_are_text_json_and_markdown(cited):
    """The answer stays as it is; a footnote for each source, in the order of the sentences."""
    text = cited.to_markdown()
    body, notes = text.split("\n\n[^1]: ")
    found = json.loads(cited.to_json())

    assert re.sub(r"\[\^\d\]| \*\(no certain source\)\*", "", body) == SAID
    assert "Dogs bark. *(no certain source)*" in body
    assert notes.startswith("**source 1** (")
    assert text.count("]: **") == len(cited.sources)
    assert [s["text"] for s in found["sentences"]] == [s.text for s in cited.sentences]
    assert found["sentences"][0]["sources"][0]["text"] == NOTES[0]
    assert found["sentences"][1] == {
        "text": "Dogs bark.",
        "grounded": 0,
        "r2_held_out": None,
        "sources": [],
    }
    assert found["answer"] == SAID
    assert "no certain source" in str(cited).splitlines()[1 + len(cited.sentences[0].sources) + 1]


def test_the_page_of_citations_links_sentences_and_sources(parrot, tmp_path):
    """And shows what a source says as text, never as markup."""
    sources = {"a <b>": "It opened in 1889. <script>x</script>", "*b*": "In Paris, [x](y)."}
    cited = eblime.PromptExplainer(parrot, sources).cite("Where <i>?", answer=ANSWER)
    page = cited.to_html(tmp_path / "cited.html")

    assert (tmp_path / "cited.html").read_text("utf8") == page
    assert '<span id="sentence-1">It opened in 1889.</span><sup><a href="#source-1"' in page
    assert '<a href="#sentence-2">sentence 2</a>' in page
    assert "a &lt;b&gt;" in page
    assert "<script>" not in page
    assert "Where &lt;i&gt;?" in page
    assert r"**\*b\*** (" in cited.to_markdown()
    assert r"\<script\>" in cited.to_markdown()


def test_an_answer_of_one_sentence_and_one_without_certainty(parrot):
    """The whole answer is the sentence; a share that is too large to reach leaves nothing."""
    explainer = eblime.PromptExplainer(parrot, NOTES)
    one = asyncio.run(explainer.acite("Where?", answer="It is in Paris."))
    none = explainer.cite("Where?", answer="It is in Paris.", min_share=0.99)

    assert [s.text for s in one.sentences] == ["It is in Paris."]
    assert one.sentences[0].sources[0].text == NOTES[1]
    assert none.sources == {}
    assert none.to_markdown() == "It is in Paris. *(no certain source)*\n"
    assert "no source with certainty" in none.to_html()
    own = explainer.cite("Where?", answer="It is in Paris.[^1]")
    assert own.to_markdown().startswith("It is in Paris.\\[^1]")  # no footnote of ours


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({"model": lambda prompts: [0.0] * len(prompts)}, {}, "`cite` needs a language model"),
        ({"method": "lime"}, {}, "`method` must give intervals for citations"),
        ({}, {"prob": 1.5}, "`prob`"),
        ({}, {"min_share": -0.1}, "`min_share`"),
        ({}, {"min_share": 5}, "`min_share` must be at most 1"),
    ],
)
def test_citations_that_cannot_be_made_are_refused(parrot, settings, given, message):
    """With the reason."""
    explainer = eblime.PromptExplainer(**{"model": parrot, "sources": NOTES} | settings)
    with pytest.raises(ValueError, match=message):
        explainer.cite("When?", answer=ANSWER, **given)


# --- documents and chunks -------------------------------------------------------------------------


def shelf(documents=30, chunks=6):
    """Documents of chunks, one of which has the year."""
    found = {
        f"book {k}": [f"Page {i} of book {k} is about cats." for i in range(chunks)]
        for k in range(documents)
    }
    found["book 7"][4] = "The tower opened in 1889."
    return found


def year_score(prompts):
    """The year counts, and a long prompt a little."""
    return [("1889" in prompt) - len(prompt) / 1e5 for prompt in prompts]


def test_the_chunk_is_found_in_its_document_within_the_calls():
    """Documents that count are opened, and the others stay as they are."""
    asked = []
    score = lambda prompts: asked.extend(prompts) or year_score(prompts)  # noqa: E731
    explainer = eblime.PromptExplainer(score, shelf(), levels=2)
    calls = eblime.Calls(max_calls=100)
    e = explainer.explain("When?", n_masks=100, calls=calls)
    opened = e.provenance["opened"]

    assert e.features[top(e)] == "book 7, chunk 5 'The tower opened in 1889.'"
    assert e.posterior.interval()[top(e), 0] > 0
    assert e.provenance["model_calls"] == len(asked) <= 100
    assert "book 7" in opened
    assert len(opened) == 4  # 24 chunks, half of the masks of one level
    assert len(e.features) == 30 - 4 + 4 * 6
    assert [name for name in e.features if "chunk" not in name] == [
        f"book {k}" for k in range(30) if f"book {k}" not in opened
    ]
    assert len(e.masks) <= 50  # the second half alone
    assert e.provenance["input"]["levels"] == 2
    assert f"chose the documents to open: {', '.join(opened)}." in " ".join(str(e).split())


def test_the_fit_does_not_know_the_masks_that_chose():
    """It is that of the opened sources in an explainer of their own, with other masks."""
    explainer = eblime.PromptExplainer(year_score, shelf(), levels=2, n_masks=128)
    e = explainer.explain("When?")
    names, texts = e.features, e.details()["text"]
    flat = eblime.PromptExplainer(year_score, dict(zip(names, texts, strict=True)))
    alone = eblime.fit(e.masks[e.weights > 0], e.scores[e.weights > 0])

    assert e.scene.text == flat.explain("When?", n_masks=80).scene.text
    assert_allclose(e.posterior.mean, alone.mean, atol=0.05)
    assert_allclose(e.scores, year_score(e.scene.inputs(e.masks)))
    assert (e.weights > 0).sum() == 64
    assert e.more(20).provenance["opened"] == e.provenance["opened"]
    assert len(e.more(20).masks) == len(e.masks) + 20


def test_documents_are_cut_and_short_ones_stay(tmp_path):
    """Texts, files and documents of other packages; the answer is written once."""
    texts = {"a": "Cats.\n\nIt opened in 1889.\n\nDogs.", "b": "One paragraph."}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf8")
    parrot = Parrot()
    for sources, first in ((texts, "a"), (tmp_path, "a.txt"), (list(texts.values()), "source 1")):
        e = eblime.PromptExplainer(parrot, sources, levels=2).explain("When?", "1889")
        assert e.features[:3] == [
            f"{first}, chunk 1 'Cats.'",
            f"{first}, chunk 2 'It opened in 1889.'",
            f"{first}, chunk 3 'Dogs.'",
        ]
        assert len(e.features) == 4
        assert top(e) == 1
    assert len(parrot.generated) == 3


def test_citations_name_chunks(parrot):
    """Documents that count for any sentence are opened."""
    cited = eblime.PromptExplainer(parrot, {"a": NOTES[:4], "b": NOTES[4:]}, levels=2).cite("When?")

    assert cited.sentences[0].sources[0].source == "a, chunk 1 'The tower opened in 1889.'"


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"levels": 3}, ValueError, "`levels` must be >= 1 and <= 2"),
        ({"sources": ["a", "b"]}, ValueError, "must have a document of several chunks"),
        ({"sources": {"a": ["x", " "]}}, ValueError, "source 2 is ' '"),
        ({"sources": {"a": 3}}, TypeError, "`sources` must be a list of texts"),
        ({"levels": 1}, TypeError, "source 1 is"),
        ({"prompt": "".join(map("{{{}}}".format, shelf()))}, ValueError, "contain {sources} once"),
    ],
)
def test_levels_that_cannot_be_are_refused(settings, error, message):
    """Before anything is asked."""
    given = {"model": year_score, "sources": shelf(), "levels": 2} | settings
    with pytest.raises(error, match=message):
        eblime.PromptExplainer(**given)


def test_runs_have_one_level():
    """Their inputs share calls, and the second level follows from the first."""
    explainer = eblime.PromptExplainer(year_score, shelf(), levels=2)
    with pytest.warns(UserWarning, match="1 inputs failed, .* first: .*`levels` must be 1"):
        found = explainer.explain_many(["When?"], progress=False)

    assert "`levels` must be 1" in found.failures()["error"][0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda n: [np.full(9, 0.5)] * n, r"which are <= 0, .* one of which is \[0.5, 0.5"),
        (lambda n: [np.full(3, -0.5)] * n, r"of 9 tokens, .* one of which is \[-0.5, -0.5, -0.5\]"),
        (lambda n: [np.full(9, -0.5)] * (n + 1), r"for each of 1 prompts; it returned 2 rows\."),
    ],
)
def test_log_probabilities_that_are_none_are_refused(parrot, rows, message):
    """Such as probabilities, those of other tokens, or of other prompts."""
    parrot.token_log_probs = lambda prompts, answer: rows(len(prompts))
    explainer = eblime.PromptExplainer(parrot, NOTES)
    with pytest.raises(eblime.ModelError, match=f"(?s)`token_log_probs` must return.*{message}"):
        explainer.explain("When?", answer=ANSWER + " Yes.")


def test_log_probabilities_may_be_rounded(parrot):
    """Nearly zero is zero, and nothing is nearly infinite."""
    parrot.token_log_probs = lambda prompts, answer: [np.full(8, 1e-6)] * len(prompts)

    e = eblime.PromptExplainer(parrot, NOTES).explain("When?", answer=ANSWER)
    assert abs(e.prediction) < 1e-5
