"""Write the schemas that editors read, workflow/schemas/, and docs/settings.md from the classes of settings.

python scripts/write_schemas.py
"""

from hatchery.artifacts.atomic import write_text
from hatchery.schemas.schema_files import SCHEMAS, schema_texts
from hatchery.schemas.settings_page import PAGE, settings_page


def main() -> None:
    """Write the page and every schema, and remove those of kinds that there are no more."""
    texts = schema_texts()
    for path in set(SCHEMAS.glob("*.yaml")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        write_text(path, text)
    write_text(PAGE, settings_page())


if __name__ == "__main__":
    main()
