"""Every relative link of every page leads to a file of the repository, and its anchor to a heading there;
every file that a page names as `docs/...md` or `bench/...md` exists. Dated results (bench/results) are not
checked: they name what was."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(
    r"`((?:docs|bench|tests|tools|runs|src|python|models|examples)/[\w./-]+\.(?:md|py|h|cpp|toml|svg|json))`"
)


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(path):
    return {
        anchor(line.lstrip("#"))
        for line in without_code(path.read_text()).splitlines()
        if line.startswith("#")
    }


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def wrong(page):
    text = without_code((ROOT / page).read_text())
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "``", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if not path.exists():
            yield f"{page}: {target}: no such file"
        elif fragment and path.suffix == ".md" and fragment not in anchors(path):
            yield f"{page}: {target}: no such heading"
    for name in NAMED.findall(text):
        if not (ROOT / name).exists():
            yield f"{page}: `{name}`: no such file"


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True)
    pages = (
        listed.stdout.split()
        if listed.returncode == 0 and listed.stdout
        else [
            str(path.relative_to(ROOT))
            for folder in ("docs", "bench", "models", "tests")
            for path in (ROOT / folder).rglob("*.md")
        ]
        + ["README.md", "CONTRIBUTING.md"]
    )
    pages = [
        page
        for page in pages
        if not page.startswith(("bench/results/", "python/nereid/prompts/")) and (ROOT / page).exists()
    ]
    failures = [failure for page in pages for failure in wrong(page)]
    print("\n".join(failures) or f"{len(pages)} pages, all links lead somewhere")
    return int(bool(failures) or len(pages) < 10)


if __name__ == "__main__":
    sys.exit(main())
