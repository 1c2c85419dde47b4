"""The pages that readers are promised exist, and are no longer than they may be; dated results are in
bench/results."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = """README.md CONTRIBUTING.md models/small/README.md
docs/quickstart.md docs/verdicts.md docs/cli.md docs/troubleshooting.md
docs/recipes/your_own_module.md docs/recipes/your_own_checkpoint.md docs/recipes/from_python.md
docs/data.md docs/sft.md docs/rl.md docs/run_files.md docs/evaluation.md docs/ablation.md
docs/architecture.md docs/compiler.md docs/replay.md docs/security.md docs/trace_format.md docs/synth.md
docs/glossary.md docs/log.md""".split()
DATE = re.compile(r"^#.*\b20\d\d-\d\d-\d\d", re.M)


def errors():
    for page in PAGES:
        if not (ROOT / page).is_file():
            yield f"{page}: no such page"
    lines = (ROOT / "README.md").read_text().count("\n")
    if lines > 120:
        yield f"README.md: at most 120 lines, got {lines}"
    size = (ROOT / "docs/log.md").stat().st_size
    if size > 20 * 1024:
        yield f"docs/log.md: at most 20 KiB, got {size} bytes: move facts to the pages that they belong to"
    for page in sorted((ROOT / "bench").glob("*.md")):
        for heading in DATE.findall(page.read_text()):
            yield f"{page.relative_to(ROOT)}: `{heading}`: dated results belong in bench/results"
    for page in sorted((ROOT / "bench/results").iterdir()):
        if not re.fullmatch(r"(20\d\d-\d\d-\d\d.*|README\.md)", page.name):
            yield f"{page.relative_to(ROOT)}: expected a name that begins with a date"


found = list(errors())
print("\n".join(found) or f"{len(PAGES)} pages are there")
sys.exit(bool(found))
