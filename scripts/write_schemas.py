"""Write workflow/schemas/, which editors read, and docs/settings.md from the settings classes.

python scripts/write_schemas.py
"""

from hatchery.artifacts.atomic import write_text
from hatchery.schemas import PAGE, SCHEMAS, schema_texts, settings_page


def main() -> None:
    """Write docs/settings.md and all schemas, and remove schemas of kinds of files that no longer exist."""
    texts = schema_texts()
    for path in set(SCHEMAS.glob("*.yaml")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        write_text(path, text)
    write_text(PAGE, settings_page())


if __name__ == "__main__":
    main()
