"""Every `nereid COMMAND --option` that a page shows exists: commands and options are those of docs/cli.md,
which is generated from --help, and files of runs/ and models/ are there. What the commands print is tested by
commands_test.py, on the pages that it runs."""

import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A command begins a line of code, or a `span` of text; names in capitals are placeholders.
COMMAND = re.compile(
    r"(?:^[ $]*|`|\| *|&& *|[A-Z_]+=\S+ )(?:\./)?nereid ([a-z][\w-]*[^`\n]*?(?:\\\n[^`\n]*?)*)(?:`|$)", re.M
)
OPTION = re.compile(r"^  (?:\[[^\]]*\] *)?((?:--?[\w-]+,?)+)", re.M)


def options():
    """{command: its options}, from the generated page."""
    found = {}
    for section in re.split(r"^##+ ", (ROOT / "docs/cli.md").read_text(), flags=re.M)[1:]:
        words = section.splitlines()[0].split()
        usage = section.split("Examples:")[0]
        found[" ".join(words[1:])] = {name for names in OPTION.findall(usage) for name in names.split(",")}
    return found


def words_of(text):
    """The words of a command without what comes after it: a comment, a pipe, another command."""
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError:  # the quote continues in another line
        words = text.split()
    end = next((i for i, word in enumerate(words) if word in ("|", "&&", ";", "||", ">", "<")), len(words))
    return words[:end]


def wrong(text, known):
    words = words_of(text)
    command = words[0]
    if command not in known:
        return f"there is no command {command!r}"
    if len(words) > 1 and f"{command} {words[1]}" in known:
        command += " " + words[1]
    for word in words:
        option = word.split("=")[0].rstrip(",.;:)")
        if re.fullmatch(r"--[a-z][\w-]*|-[a-z]", option) and option not in known[command]:
            return f"`nereid {command}` has no option {option}"
        if re.fullmatch(r"(?:runs|models|tests|examples)/[\w./-]+\.\w+", word) and not (ROOT / word).exists():
            if not word.endswith((".safetensors", ".jsonl")):
                return f"there is no file {word}"
    return None


def pages():
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    listed = listed or [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.md")]
    return [
        page
        for page in listed
        if not page.startswith(("bench/results/", "build/", ".venv/", "tests/hostile/"))
    ]


def main():
    known, checked, errors = options(), 0, []
    for page in pages():
        text = (ROOT / page).read_text()
        for found in COMMAND.finditer(text):
            checked += 1
            if error := wrong(found.group(1), known):
                errors.append(
                    f"{page}:{text.count(chr(10), 0, found.start(1)) + 1}: {error}: nereid {found.group(1)}"
                )
    assert len(known) > 30 and checked > 100, (len(known), checked)
    print("\n".join(errors) if errors else f"{checked} commands of {len(known)} exist, with their options")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
