"""`eblime batch` and `eblime report`: explain many inputs into a folder, and summarise it.

A manifest stores the options of the command. `--resume` parses them again, as if they were typed.
A run folder may come from someone else: of its manifest only settings are used as they are. Every
file and address in it (`Recipe.places`) must be named again by the user, or the run be trusted: a
model can run code, and receives the inputs. The domain is looked up among the installed ones.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eblime import registry
from eblime._text import csv_text, one_of
from eblime.batch.folder import part_files, part_numbers, read_manifest
from eblime.batch.location import Location
from eblime.batch.results import Run, open_run
from eblime.cli import options
from eblime.cli.assembly import PICKLES, make_explainer, model_of
from eblime.cli.show import print_pages, say, show_page
from eblime.domains.record import Command, Domain, Item, Option

if TYPE_CHECKING:
    from eblime.engine.cache import AnswerCache

_SOME_FAILED, _INTERRUPTED = 3, 130  # exit codes
_OUT = Option("out", "Folder of the run.", short="-o", required=True, used_by="result")
_OVERWRITE = Option(
    "overwrite", "Begin anew where --out has another run.", type=bool, used_by="result"
)
AGAIN = (  # of `batch --resume`: what a manifest must not name alone
    Option("model", "With --resume: the run's model again.", short="-m"),
    *(
        Option(name, f"With --resume: the {name} of the run again.")
        for name in ("inputs", "labels", "background", "sources", "prompt")
    ),
)
_RULE = Option("rule", "JSON file that says which inputs are rejected.", type=Path)
_POOL = Option("pool", "Fit all inputs again with a prior learnt from them (--keep).", type=bool)
# these change no result of the run itself
_EXECUTION = (*options.WORKERS, options.MAX_FAILURES, _POOL, _RULE)
_INPUTS = Option("inputs", "Where they are.", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Makes the explainer of a run in any process that needs it.

    `about` is what the run's manifest stores: the domain `kind`, the inputs and the values of the
    options, with full paths. `explain_many` compares what the files hold.
    """

    about: dict[str, Any]
    trust_pickle: bool
    cache: AnswerCache | None

    @classmethod
    def start(cls, domain: Domain, values: options.Values, cache: AnswerCache | None) -> Recipe:
        """The recipe of a new run from the values of all options."""
        about: dict[str, Any] = {
            **{option.name: values.get(option.name) for option in _stored_options(domain.name)},
            "kind": domain.name,
            "inputs": values["argument"],
        }
        found = cls(about=about, trust_pickle=values["trust_pickle"], cache=cache)
        about |= {name: _full_name(name, value) for name, value in found.places().items()}
        for name, value in found.places().items():
            if name not in ("model", "inputs") and not Path(value).exists():
                raise FileNotFoundError(f"There is no file {str(values[name])!r} for --{name}.")
        return found

    @classmethod
    def resume(cls, folder: str, values: options.Values, cache: AnswerCache | None) -> Recipe:
        """The recipe of a run that `eblime batch` started, from the options of `batch --resume`.

        Files and addresses are used if the user named them again, or trusts the run. A pickle that
        was named needs `--trust-pickle`.
        """
        about = read_manifest(Location.of(folder))["settings"]["about"]
        _check_stored(about, folder)
        trust_pickle = values["trust_run"] or values["trust_pickle"]
        found = cls(about=about, trust_pickle=trust_pickle, cache=cache)
        places, names = found.places(), (option.name for option in AGAIN)
        named = {name: values[name] for name in names if values[name]}
        for name, value in named.items():
            if _full_name(name, value) != places.get(name):
                raise ValueError(
                    f"{folder} was created with --{name} {places.get(name)}; this call has "
                    f"--{name} {value}."
                )
        if set(places) - set(named) and not values["trust_run"]:
            listed = ", ".join(f"--{name} {value}" for name, value in places.items())
            trusting = shlex.join(["eblime", "batch", "--resume", folder, "--trust-run"])
            raise PermissionError(
                f"{folder} would use {listed}. If you trust all of it, name it again: "
                f"{found.resume_command(folder)} or trust the folder: {trusting}"
            )
        return found

    def places(self) -> dict[str, str]:
        """All files and addresses that the run uses, by the options that name them."""
        files = (o.name for o in _stored_options(self.about["kind"]) if o.type is Path)
        named = {name: self.about[name] for name in ("inputs", "model", *files)}
        return {name: value for name, value in named.items() if value is not None}

    def __call__(self) -> Any:
        """Load the model and make the explainer."""
        domain, command = options.command_of(self.about["kind"])
        made = make_explainer(domain, command, self.model(), self.about, self.about["inputs"])
        return made if self.cache is None else replace(made, cache=self.cache)

    def model(self) -> Any:
        """The model."""
        _, command = options.command_of(self.about["kind"])
        return model_of(command, self.about, trust_pickle=self.trust_pickle)

    def inputs(self) -> Any:
        """The inputs of the run, as `explain_many` takes them."""
        _, command = options.command_of(self.about["kind"])
        read = registry.resolve(command.inputs or command.items)
        found = read(self.about["inputs"], self.model, options.own_values(command, self.about))
        return found if command.inputs is not None else [Item(*item) for item in found]

    def resume_command(self, folder: str, *options: str) -> str:
        """The command that resumes the run, ready to be pasted."""
        places = self.places()
        words = [word for name, value in places.items() for word in (f"--{name}", value)]
        if not {*places} <= {option.name for option in AGAIN}:  # a file of another package's domain
            words = ["--trust-run"]
        elif self.trust_pickle and places["model"].lower().endswith((".skops", *PICKLES)):
            words.append("--trust-pickle")
        return shlex.join(["eblime", "batch", "--resume", folder, *options, *words])


def _stored_options(kind: str) -> list[Option]:
    """The options that decide the results of a run."""
    own = (option for option in options.command_of(kind)[1].options if option.batch)
    return [_INPUTS, options.MODEL, *options.ASKING, *options.PARTS, *own]


def _check_stored(about: Any, folder: str) -> None:
    """Refuse values that the options of the command could not have."""
    if not isinstance(about, dict) or not isinstance(about.get("kind"), str):
        raise ValueError(f"{folder} was not started by `eblime batch`; use `eblime.explain_many`.")
    context = click.Context(click.Command(about["kind"]))
    for option in _stored_options(about["kind"]):
        given, same = about.get(option.name, "missing"), False
        with suppress(click.UsageError, AttributeError, TypeError):
            read = options.option_of(option).type_cast_value(context, given)
            same = option.name in about and json.dumps(read, default=str) == json.dumps(given)
        if not same or (given is None and (option.required or option.default is not None)):
            raise ValueError(f"{folder}/manifest.json is damaged: {option.flag} is {given!r:.80}.")


def _full_name(name: str, value: str) -> str:
    """A file or address of an option as a manifest has it; a Python name as it is."""
    if name == "inputs":
        return str(Location.of(value))
    is_path = name != "model" or Path(value).is_file()
    return str(Path(value).resolve()) if is_path else value


def _start(domain: Domain, command: Command, /, **values: Any) -> None:
    """Start a run. The user typed every name in it, so all of them may be imported."""
    recipe = Recipe.start(domain, values, options.cache_of(values))
    _run(recipe, values["out"], values, overwrite=values["overwrite"])


def _batch(**values: Any) -> None:
    """Explain many inputs; an interrupted run can be resumed.

    A run folder may come from someone else, so --resume uses the files and addresses in it only if
    you name them again or trust the folder. Its message has the command to copy.

    Exit code 0: every input is explained; 3: some inputs failed, the others are explained; 2: an
    error stopped the run; 130: interrupted.

    Example: eblime batch image photos/ --model net.onnx --target predicted --out run/

    Example: eblime batch --resume run/ --trust-run

    Example: eblime batch --resume run/ --model mood:score --inputs reviews.jsonl
    """
    context, folder = click.get_current_context(), values["resume"]
    if (name := context.invoked_subcommand) is not None:
        for early in values:  # between `batch` and the name, where they would be ignored
            if getattr(context.get_parameter_source(early), "name", "") == "COMMANDLINE":
                raise ValueError(f"--{early.replace('_', '-')} must come after {name}.")
        return
    if folder is None:
        known = one_of(registry.names("domains"))
        raise ValueError(f"eblime batch needs {known}, or --resume RUN.")
    recipe = Recipe.resume(folder, values, options.cache_of(values))
    location = Location.of(folder)
    settings = read_manifest(location)["settings"]
    done = sum(len(part_numbers(settings, part)) for part in part_files(location))
    say(f"{done} of {settings['count']} inputs are done already.")
    _run(recipe, folder, values, retry=values["retry"])


BATCH = options.domain_group(
    "batch",
    _start,
    [_OUT, _OVERWRITE, *options.ASKING, *options.ANSWERS, *options.PARTS, *_EXECUTION],
    "Exit code 3: some inputs failed, the others are explained.",
    callback=_batch,
    help=_batch.__doc__,
    invoke_without_command=True,
    params=[
        options.option_of(option)
        for option in (
            Option("resume", "Resume this run with its own settings."),
            *AGAIN,
            Option(
                "trust_run",
                "With --resume: use all that the run names; its model can run code.",
                type=bool,
            ),
            *_EXECUTION,
            *options.ANSWERS,
            Option("retry", "With --resume: try failed inputs again.", type=bool),
        )
    ],
)


def _run(recipe: Recipe, folder: str, values: dict[str, Any], **again: Any) -> None:
    """Start or resume a run, and print a summary; failed inputs give their own exit code."""
    from eblime.batch.run import explain_many
    from eblime.batch.truth import read_rule
    from eblime.batch.workers import Workers

    if values["rule"]:  # refused before the model is asked
        read_rule(values["rule"].read_text(encoding="utf8"))
    workers, about = Workers(**options.settings_of(options.WORKERS, values)), recipe.about
    try:
        run = explain_many(
            recipe,
            recipe.inputs(),
            folder,
            targets=about["target"],
            rng=about["seed"],
            keep=about["keep"] or None,
            **{name: about[name] for name in ("part_size", "prob", "until", "max_masks")},
            workers=workers,
            max_failures=values["max_failures"],
            **again,
        )
    except KeyboardInterrupt:
        if (Location.of(folder) / "manifest.json").kind() == "file":
            resume = recipe.resume_command(folder)
            say(f"Interrupted. Finished parts are saved. Resume: {resume}")
            say(f"A page of what there is: {shlex.join(['eblime', 'report', folder])}")
        else:
            say("Interrupted before the run began. Repeat the command.")
        sys.exit(_INTERRUPTED)  # with a message of its own
    failures = run.failures()
    failed = len(failures)
    say(f"{about['inputs']}: {run.settings['count'] - failed} explained, {failed} failed.")
    if failed:
        say(f"Most frequent error: {failures['error'].mode()[0]}")
        say(f"Try them again: {recipe.resume_command(folder, '--retry')}")
    if values["pool"]:
        run = run.pool()
    say(f"The run is in {run.location if values['pool'] else folder}.")
    say(f"Look at {_write_page(run, rule=values['rule'])}.")
    if failed:
        sys.exit(_SOME_FAILED)


def _report(run: str, open: bool, pdf: bool, **values: Any) -> None:
    """Make a page about a run, as `eblime batch` does at its end.

    The page has the importances over all inputs, a list of the inputs with links to their pages,
    and the failures.

    With --rule, which is stored in the run, it says which inputs are rejected, and with --truth,
    a table with the column `name`, which flaws were found. decisions.csv has both.

    Example: eblime report run/ --open

    Example: eblime report run/ --truth known.csv --rule rule.json
    """
    page = _write_page(open_run(run), **values)
    say(f"Wrote {page}.")
    if pdf:
        file = Path(str(page))
        linked = dict.fromkeys(re.findall('href="(pages/[^"]+)"', file.read_text(encoding="utf8")))
        print_pages([file, *map(file.parent.joinpath, linked)])
    if open:
        show_page(page)


def _write_page(
    run: Run, *, rule: Path | None, truth: Any = None, html: Any = None, pages: int | None = None
) -> Path | Location:
    """The page of a run, with what its rule decides; a new rule is stored in the run."""
    from eblime.batch.overview import overview
    from eblime.batch.truth import USUAL, decide, read_rule

    stored, found = run.location / "rule.json", None
    if rule:
        read_rule(rule.read_text(encoding="utf8"))  # a wrong one is not stored
        stored.write(rule.read_bytes())
    known = stored.kind() == "file"
    if known or truth:
        found = decide(run, stored.read().decode() if known else USUAL, truth)
        say("\n".join(found.words))
        (run.location / "decisions.csv").write(csv_text(found.table.iloc[:, 2:]).encode())
    page = html or run.location / "report.html"
    overview(run, str(page), pages=pages, decisions=found)
    return page


_PAGES = "How many saved explanations get a page. Default: all; of more than 1000 rows none."
REPORT = options.OptionCommand(
    "report",
    _report,
    {"run": "Folder of the run."},
    [
        *options.used_by(
            "result",
            Option("html", "File of the page. Default: report.html in the run.", type=Path),
            Option("pages", _PAGES, type=int, minimum=0),
            Option("pdf", "Also print the page and those of its inputs to PDF files.", type=bool),
            Option("truth", "Table of what is known of the inputs, by their name.", type=Path),
            _RULE,
        ),
        options.OPEN,
    ],
)
