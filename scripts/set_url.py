"""Name the repository in the README and the metadata of a folder, before it is built for an index.

    scripts/set_url.py https://host/owner/repository [FOLDER]

Links and pictures of README.md become absolute, and pyproject.toml gets the project's URLs. Both
files are changed in place: take a copy, such as an unpacked source distribution.
"""

import re
import sys
from pathlib import Path


def absolute(text: str, url: str) -> str:
    """Return Markdown whose relative links lead to the repository; those within it stay."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}{found[2]}({url}/{kind}/HEAD/{found[3]})"

    return re.sub(r"(!?)(\[[^\]]*\])\((?!\w+:|#)([^)]+)\)", link, text)


def main(url: str, folder: str = ".") -> None:
    url = url.removesuffix("/")
    if not re.fullmatch(r"https://[^/\s]+(/[\w.~-]+)+", url):
        sys.exit(f"URL={url}: must be the repository's page, https://host/owner/repository")
    readme, project = Path(folder, "README.md"), Path(folder, "pyproject.toml")
    readme.write_text(absolute(readme.read_text("utf-8"), url), "utf-8")
    urls = (
        f'[project.urls]\nRepository = "{url}"\nIssues = "{url}/issues"\n'
        f'Changelog = "{url}/blob/HEAD/CHANGELOG.md"\n\n'
    )
    settings = project.read_text("utf-8")
    project.write_text(
        settings.replace("[project.scripts]\n", f"{urls}[project.scripts]\n"), "utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
