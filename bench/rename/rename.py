"""Move modules as a table says: `python bench/rename/rename.py modules.yaml`, in a clean checkout."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PACKAGE = "vieval_plugin"


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def home(module):
    """Path of a module without its suffix; `judges` lies beside the package."""
    return Path(module.replace(".", "/")) if module.startswith("judges") else Path(PACKAGE, module.replace(".", "/"))


def new_name(module, table):
    """Name of a module after the moves, by the longest entry that holds it."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (prefix := ".".join(parts[:length])) in table:
            return ".".join([table[prefix], *parts[length:]])
    return module


def move_files(table):
    for old in sorted(table, key=lambda name: -name.count(".")):  # members before their package
        for path in (home(old).with_suffix(".py"), home(old)):
            if (ROOT / path).exists() and git("ls-files", str(path)):
                target = home(table[old]).with_suffix(path.suffix)
                (ROOT / target.parent).mkdir(parents=True, exist_ok=True)
                if path.suffix or not (ROOT / target).exists():
                    git("mv", str(path), str(target))
                else:
                    for member in git("ls-files", str(path)).split():
                        (ROOT / target / Path(member).relative_to(path)).parent.mkdir(parents=True, exist_ok=True)
                        git("mv", member, str(target / Path(member).relative_to(path)))
                break
        else:
            sys.exit(f"no module {old}")


def import_lines(line, table):
    """The statements that stand for one `from vieval_plugin... import ...`, and names that are now called otherwise."""
    [node] = ast.parse(line.strip()).body
    package = node.module.removeprefix(PACKAGE).strip(".")
    lines, renamed = {}, {}
    for alias in node.names:
        full = ".".join(filter(None, (package, alias.name)))
        target = new_name(full, table) if full in table else None
        if target is None:
            source, name = new_name(package, table), alias.name
        else:
            source, _, name = target.rpartition(".")
            if alias.asname is None and name != alias.name:
                renamed[alias.name] = name
        text = f"{name} as {alias.asname}" if alias.asname else name
        lines.setdefault(".".join(filter(None, (PACKAGE, source))), []).append(text)
    return [f"from {module} import {', '.join(names)}" for module, names in lines.items()], renamed


def python_source(text, table):
    """A Python source with its imports, and the names bound by them, after the moves."""
    tree, lines = ast.parse(text), text.split("\n")
    edits, renamed = [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
            statements, names = import_lines(ast.unparse(node), table)
            indent = lines[node.lineno - 1][: node.col_offset]
            tail = re.search(r"\s*#.*$", lines[node.end_lineno - 1])
            edits.append((node.lineno, node.end_lineno, [indent + line for line in statements], tail))
            renamed |= names
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in renamed:
            # edited from the right, so that a longer name moves no column of those behind it
            edits.append((node.lineno, None, (node.col_offset, node.id, renamed[node.id]), None))
    names = sorted((edit for edit in edits if edit[1] is None), key=lambda edit: (edit[0], edit[2][0]), reverse=True)
    for number, _, (start, old, new), _ in names:
        line = lines[number - 1].encode()
        lines[number - 1] = (line[:start] + new.encode() + line[start + len(old) :]).decode()
    for first, last, statements, tail in sorted((e for e in edits if e[1] is not None), key=lambda e: -e[0]):
        if tail:
            statements[-1] += tail[0]
        lines[first - 1 : last] = statements
    return "\n".join(lines)


def text_source(text, table):
    """Any text: dotted names, paths, and import statements in documentation."""

    def statement(match):
        lines, _ = import_lines(match[2], table)
        return "\n".join(match[1] + line for line in lines)

    text = re.sub(rf"^([ >.]*)(from {PACKAGE}[\w.]* import [\w, ]+)$", statement, text, flags=re.M)
    text = re.sub(rf"\b{PACKAGE}\.([a-z_0-9.]*[a-z_0-9])", lambda m: f"{PACKAGE}.{new_name(m[1], table)}", text)

    def path(match):
        module = match[2].replace("/", ".")
        moved = new_name(module, table) if match[1] or "." in module else module
        return match[0] if moved == module else match[1] + moved.replace(".", "/") + match[3]

    return re.sub(rf"(?<![\w./-])({PACKAGE}/|)([a-z_0-9]+(?:/[a-z_0-9]+)*)(\.py\b|/(?=[`\s)*]))", path, text)


def main():
    table = yaml.safe_load(Path(__file__).with_name(sys.argv[1]).read_text())
    move_files(table)
    for name in git("ls-files").split("\n"):
        path = ROOT / name
        if not name or not path.is_file() or path.parent == Path(__file__).parent or name == "CHANGELOG.md":
            continue
        try:
            before = path.read_text()
        except UnicodeDecodeError:
            continue
        after = python_source(before, table) if path.suffix == ".py" else before
        after = text_source(after, table)
        if after != before:
            path.write_text(after)


if __name__ == "__main__":
    main()
