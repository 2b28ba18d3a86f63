"""`PromptExplainer`: sources, answers and their parts."""

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
    """One call for the answer, 65 for the scores, whatever the number of targets."""
    explainer = eblime.PromptExplainer(parrot, NOTES)
    found = explainer.explain_targets("When did it open?")

    assert len(parrot.generated) == 1
    assert len(parrot.scored) == len(set(parrot.scored)) <= 65  # the whole prompt, and its masks
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
    with pytest.raises(ValueError, match="`target` must be a part of the answer; 'Rome' is not"):
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
    assert more.posterior.n_masks == 74
    assert len(parrot.scored) <= 74
    with pytest.raises(ValueError, match="must be the explained question"):
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
    assert len(e.masks) == 13


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
        ({"sources": [{"content": "a"}]}, ValueError, 'messages with a "role" and a'),
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
