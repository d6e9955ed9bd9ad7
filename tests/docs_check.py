#!/usr/bin/env python3
"""Holds README.md, CONTRIBUTING.md and docs/*.md to the tree and to the program.

Links lead to files and headings that exist; files named in the text exist; so do the functions and
macros of the library, the subcommands and options of `lockstep`, the tests, the programs of the
build and the shell scripts in command blocks. Every hash of README is one of tests/golden, and a C
program in a page compiles. Every subcommand is in README and in the man page, every operator and
contract header in docs/numerics.md, every layer of model files in README, every test in
docs/testing.md. Layers, keys, words and limits of model files are in docs/models.md, and nothing
else is in its tables.

Usage: docs_check.py SOURCE_ROOT BUILD_ROOT PROGRAM | --self-test
"""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = ("src/", "cl/", "tools/", "tests/", "docs/", "include/", ".ci/")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
# Words of the guides that stand for whatever the reader calls his own operator.
EXAMPLE = re.compile(r"\blimit\b|ops_limit|OP_|NAME|DIR")

# Keys of all layers of model files, told once.
COMMON_KEYS = {"name", "from", "share"}


class Tree:
    """What the pages may name."""

    def __init__(self, root, commands, tests, targets, kinds):
        self.root, self.commands, self.tests, self.targets = root, commands, tests, targets
        self.kinds = kinds # layers of model files: word to keys
        self.names = set()
        for folder in ("include", "src", "cl", "tests", "tools"):
            for path in glob.glob(os.path.join(root, folder, "**", "*"), recursive=True):
                if path.endswith((".c", ".h", ".cl")):
                    with open(path, encoding="utf-8") as f:
                        self.names |= set(re.findall(r"\b(?:lksi?_\w+|LKSI?_\w+)", f.read()))

    def has(self, path):
        return bool(glob.glob(os.path.join(self.root, path)))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def slug(heading):
    """The anchor that a heading gets."""
    text = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(text):
    return {slug(h) for h in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)}


def check_links(tree, page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(tree.root, os.path.dirname(page), path))
        if path and not os.path.exists(full):
            yield "link to %s, which does not exist" % path
        elif anchor and anchor not in headings(read(full) if path else text):
            yield "link to %s: no such heading" % target


def check_names(tree, text):
    """Files, functions and macros between backticks, and files in command blocks."""
    prose = FENCE.sub("", text)
    words = set()
    for code in re.findall(r"`([^`\n]+)`", prose):
        words |= set(re.split(r"[\s,;()&]+", code))
    for language, block in FENCE.findall(text):
        if language in ("sh", "console"):
            words |= {w for line in commands_of(language, block) for w in line.split()}
    for word in sorted(words):
        word = word.strip("'\"").rstrip(".:")
        if word.startswith(TOP) and not EXAMPLE.search(word) and not tree.has(word):
            yield "%s does not exist" % word
        if re.fullmatch(r"(?:lksi?_|LKSI?_)\w+", word) and not EXAMPLE.search(word):
            if word not in tree.names:
                yield "%s is nowhere in the code" % word


def commands_of(language, block):
    """Command lines of a block: all of `sh`, those behind a $ in `console`."""
    for line in block.splitlines():
        if language == "sh" and line.strip() and not line.startswith("#"):
            yield line
        elif language == "console" and line.startswith("$ "):
            yield line[2:]


def check_lockstep(tree, words):
    """`lockstep SUBCOMMAND --options`: they are in its help."""
    if len(words) < 2 or words[1].startswith("-"):
        return
    if words[1] not in tree.commands:
        yield "`lockstep` has no command %s" % words[1]
        return
    for word in words[2:]:
        if word in ("|", ">", "&&"):
            break
        option = word.split("=")[0]
        if re.fullmatch(r"--[a-z-]+", option) and option not in tree.commands[words[1]]:
            yield "`lockstep %s` has no option %s" % (words[1], option)


def check_command(tree, line):
    words = line.replace("'", " ' ").split()
    while re.match(r"[A-Z_]+=", words[0]): # environment
        words = words[1:]
    if os.path.basename(words[0]) == "lockstep":
        yield from check_lockstep(tree, words)
    elif words[:2] == ["meson", "test"]:
        for pattern in re.findall(r"'([^']+)'", line):
            if not any(fnmatch.fnmatch(name, pattern) for name, _ in tree.tests):
                yield "no test is named %s" % pattern
        for suite in re.findall(r"--(?:no-)?suite (\w+)", line):
            if suite != "lockstep" and not any(suite in suites for _, suites in tree.tests):
                yield "no test is in suite %s" % suite
    elif words[0].startswith("build/") and words[0][len("build/"):] not in tree.targets:
        yield "the build makes no %s" % words[0]


def check_code(tree, text):
    """Whole programs in C compile."""
    compiler = shutil.which("cc")
    for language, block in FENCE.findall(text):
        if language == "c" and "int main(" in block:
            done = subprocess.run(
                [compiler, "-x", "c", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                 "-I", os.path.join(tree.root, "include"), "-"],
                input=block, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                yield "a C program does not compile:\n" + done.stderr


def check_page(tree, page):
    text = read(os.path.join(tree.root, page))
    faults = list(check_links(tree, page, text)) + list(check_names(tree, text))
    for language, block in FENCE.findall(text):
        if language in ("sh", "console"):
            for line in commands_of(language, block):
                faults += check_command(tree, line)
    for span in re.findall(r"`(lockstep [^`\n]+)`", FENCE.sub("", text)):
        faults += check_lockstep(tree, span.split())
    faults += check_code(tree, text)
    return ["%s: %s" % (page, fault) for fault in faults]


def check_promises(tree):
    """The hash, and the subcommands."""
    readme = read(os.path.join(tree.root, "README.md"))
    man = read(os.path.join(tree.root, "docs/lockstep.1"))
    rows = [line.split() for line in read(os.path.join(tree.root, "tests/golden/lenet.txt"))
            .splitlines() if line.strip() and not line.startswith("#")]
    golden = {row[0]: row[1] for row in rows}
    if "```\n%s\n```" % golden["epochs3"] not in readme:
        yield "README.md: the hash of the demo is not that of tests/golden/lenet.txt"
    for sha in sorted(set(re.findall(r"\b[0-9a-f]{64}\b", readme))):
        if sha not in golden.values():
            yield "README.md: hash %s is not in tests/golden/lenet.txt" % sha
    yield from check_lists(tree, readme)
    yield from check_models(tree)
    for command in tree.commands:
        if "\n| `lockstep %s` |" % command not in readme:
            yield "README.md: no line on `lockstep %s`" % command
        if "\n.It Cm %s\n" % command not in man:
            yield "docs/lockstep.1: nothing on `lockstep %s`" % command


def check_lists(tree, readme):
    """Operators and contract headers are in numerics.md, layers of model files in README."""
    numerics = read(os.path.join(tree.root, "docs/numerics.md"))
    for path in sorted(glob.glob(os.path.join(tree.root, "src/op/*.c"))):
        for op in re.findall(r'^ +\.name = "(\w+)",', read(path), re.M):
            if "`%s`" % op not in numerics:
                yield "docs/numerics.md: nothing on operator %s" % op
    for path in sorted(glob.glob(os.path.join(tree.root, "cl/contract/*.h"))):
        if "`%s`" % os.path.basename(path) not in numerics:
            yield "docs/numerics.md: nothing on header %s" % os.path.basename(path)
    for layer in tree.kinds:
        if "`%s`" % layer not in readme:
            yield "README.md: nothing on layer %s" % layer


def sources(tree, pattern):
    return {path: read(path) for path in sorted(glob.glob(os.path.join(tree.root, pattern)))}


def spans(text):
    """The words between backticks, and those of whole YAML blocks."""
    code = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    code += [block for language, block in FENCE.findall(text) if language == "yaml"]
    return set(re.findall(r"\w+", " ".join(code)))


def number(text, names):
    """The value of a limit in C: a number, a shift or the name of one."""
    text = names.get(text.strip(), text.strip())
    shift = re.fullmatch(r"(\d+) << (\d+)", text)
    return str(int(shift[1]) << int(shift[2])) if shift else text


def limits_of(tree):
    """The largest numbers that the reader takes: (key, or None for a limit of all layers; number)."""
    names = {"INT32_MAX": str(2**31 - 1), "UINT32_MAX": str(2**32 - 1)}
    for text in sources(tree, "src/model/*.h").values():
        names.update(re.findall(r"(LKSI_(?:BLOCK_|MODEL_)?MAX_\w+)(?: =|) ([\d< ]+\d|\d)", text))
    for name, value in names.items():
        if not name.endswith("INT32_MAX"):
            yield None, number(value, {})
    for path, text in sources(tree, "src/model/*.c").items():
        if not os.path.basename(path).startswith("kinds_"):
            for key, high in re.findall(r'lksi_map_int\(\w+, "(\w+)", \d+, ([^,]+),', text):
                yield key, number(high, names)


def rows_of(text, head):
    """The rows of all tables whose first column is named `head`, as cells."""
    for table in re.findall(r"^\| %s \|.*\n\|[-|]+\n((?:\|.*\n)*)" % head, text, re.M):
        for row in table.splitlines():
            yield [cell.strip() for cell in row.strip("|").split("|")]


def check_models(tree):
    """docs/models.md and the reader of model files say the same."""
    text = read(os.path.join(tree.root, "docs/models.md"))
    code = sources(tree, "src/model/*.c")
    known, documented = spans(text), set()
    literals = {w for c in code.values() for w in re.findall(r'"(\w+)"', c)}
    for path, c in code.items():
        if not re.match(r"yaml|safetensors", os.path.basename(path)):
            for words in re.findall(r"char \*const [^;=]*\w+\[\] = \{([^;]*)\};", c):
                for word in re.findall(r'"(\w+)"', words):
                    if word not in known:
                        yield "docs/models.md: nothing on the word `%s`" % word
    said = set()
    for cells in rows_of(text, "layer"):
        above = said if cells[1].startswith("the same") else set()
        said = above | set(re.findall(r"`(\w+)`", cells[1]))
        for layer in re.findall(r"`(\w+)`", cells[0]):
            documented.add(layer)
            for key in sorted(tree.kinds.get(layer, set()) - COMMON_KEYS):
                if key not in said:
                    yield "docs/models.md: layer `%s` lacks its key `%s`" % (layer, key)
            for key in sorted(said - tree.kinds.get(layer, set()) - COMMON_KEYS):
                if key not in literals:
                    yield "docs/models.md: layer `%s` has no key or word `%s`" % (layer, key)
    for layer in sorted(set(tree.kinds) - documented) + sorted(COMMON_KEYS - known):
        yield "docs/models.md: nothing on `%s`" % layer
    for layer in sorted(documented - set(tree.kinds)):
        yield "docs/models.md: there is no layer `%s`" % layer
    for cells in rows_of(text, "key"):
        for key in re.findall(r"`(\w+)`", cells[0]):
            if key not in literals:
                yield "docs/models.md: there is no key `%s`" % key
    for key, high in sorted(set(limits_of(tree)), key=str):
        lines = [x for x in re.split(r"\n(?=\||\n)", text) if key is None or "`%s`" % key in x]
        if not any(re.search(r"\b%s\b" % high, line) for line in lines):
            yield "docs/models.md: the limit %s%s is missing" % (
                high, " of `%s`" % key if key else "")


def check_suites(tree):
    """Every test is in a row of testing.md."""
    rows = re.findall(r"^\| (`.*?) \|", read(os.path.join(tree.root, "docs/testing.md")), re.M)
    patterns = re.findall(r"`([^`]+)`", " ".join(rows))
    for name, _ in tree.tests:
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            yield "docs/testing.md: nothing on the test `%s`" % name


def check(tree):
    pages = ["README.md", "CONTRIBUTING.md"] + sorted(
        os.path.relpath(p, tree.root) for p in glob.glob(os.path.join(tree.root, "docs", "*.md")))
    faults = [fault for page in pages for fault in check_page(tree, page)]
    return faults + list(check_promises(tree)) + list(check_suites(tree)), len(pages)


def ask(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout


def ask_layers(program):
    """The layers of model files and the keys of each."""
    rows = [line.split() for line in ask(program, "summary", "--layers").splitlines()]
    return {row[0]: set(row[1:]) for row in rows}


def ask_program(program):
    """The subcommands of `lockstep` and the options of each, from its help."""
    names = re.findall(r"^  ([a-z]+) ", ask(program, "--help").split("Commands:")[1], re.M)
    return {name: set(re.findall(r"--[a-z-]+", ask(program, name, "--help"))) for name in names}


def real_tree(root, build, program):
    info = os.path.join(build, "meson-info")
    tests = [(t["name"], [s.split(":")[-1] for s in t["suite"]])
             for t in json.loads(read(os.path.join(info, "intro-tests.json")))]
    targets = {os.path.relpath(name, build) for t in
               json.loads(read(os.path.join(info, "intro-targets.json"))) for name in t["filename"]}
    return Tree(root, ask_program(program), tests, targets, ask_layers(program))


SHA = "0123456789abcdef" * 4
CLEAN = {
    "README.md": "# A\n[b](docs/b.md#two-words)\n`src/a.c` `src/*.c` `lks_open` `relu` `elu`\n"
                 "| `lockstep train` | x |\n```\n" + SHA + "\n```\n"
                 "```sh\nsh tools/a.sh\nlockstep train --seed 1\nmeson test -C build 'math *'\n"
                 "meson test --suite slow\nbuild/tools/lockstep train\n```\n"
                 "```c\nint main(void)\n{\n    return 0;\n}\n```\n",
    "CONTRIBUTING.md": "",
    "docs/b.md": "## Two words\n",
    "docs/testing.md": "| `math *`, `x` | all |\n",
    "docs/numerics.md": "`relu` `relu.h`\n",
    "src/op/relu.c": "    .name = \"relu\",\n",
    "cl/contract/relu.h": "",
    "src/model/model.c": "static const char *const keys[] = {\"leaf\", \"block\"};\n"
                         "lksi_map_int(x, \"leaf\", 1, 1 << 16, \"leaf: 8\", &leaf);\n",
    "src/model/kind.h": "LKSI_MAX_WINDOW = 1 << 15\n",
    "docs/models.md": "| layer | keys |\n|---|---|\n| `relu` | `slope` (1) |\n| `elu` | the same |\n\n| key | value |\n"
                      "|---|---|\n| `leaf` | up to 65536 |\n\nWindows up to 32768. `block` `name` `from` `share`\n",
    "docs/lockstep.1": "\n.It Cm train\n",
    "src/a.c": "int lks_open;\n",
    "tools/a.sh": "",
    "tests/golden/lenet.txt": "# a comment\nepochs3  " + SHA + "\n",
}
BAD = [
    ("README.md", "docs/b.md#two-words", "docs/c.md"),
    ("README.md", "#two-words", "#three-words"),
    ("README.md", "`src/a.c`", "`src/b.c`"),
    ("README.md", "`src/*.c`", "`src/*.cl`"),
    ("README.md", "`lks_open`", "`lks_close`"),
    ("README.md", "sh tools/a.sh", "sh tools/b.sh"),
    ("README.md", "lockstep train --seed", "lockstep train --sead"),
    ("README.md", "lockstep train --seed", "lockstep trian --seed"),
    ("README.md", "lockstep train --seed", "X=1 lockstep train --sead"),
    ("README.md", "math *", "maths *"),
    ("README.md", "--suite slow", "--suite slwo"),
    ("README.md", "build/tools/lockstep train", "build/tools/lockstop train"),
    ("README.md", "return 0;", "return x;"),
    ("README.md", "```\n" + SHA, "```\n" + SHA[::-1]),
    ("README.md", "| `lockstep train` | x |", ""),
    ("docs/lockstep.1", ".It Cm train", ""),
    ("docs/testing.md", "math *", "maths *"),
    ("docs/numerics.md", "`relu`", ""),
    ("docs/numerics.md", "`relu.h`", ""),
    ("README.md", "`relu`", ""),
    ("docs/models.md", "| `relu` | `slope` (1) |\n", ""),
    ("docs/models.md", "`slope`", "`slop`"),
    ("docs/models.md", "the same", "another"),
    ("docs/models.md", "`slope`", "`slope`, `more`"),
    ("docs/models.md", "| `relu` | `slope` (1) |", "| `relu` | `slope` (1) |\n| `gelu` | |"),
    ("docs/models.md", "`leaf` |", "`leafs` |"),
    ("docs/models.md", "`leaf` |", "`leaf`, `tree` |"),
    ("docs/models.md", "65536", "65535"),
    ("docs/models.md", "32768", "32767"),
    ("docs/models.md", "`block`", ""),
    ("docs/models.md", "`share`", ""),
]


def self_test():
    """A clean tree passes, and every fault put into it is found."""
    def faults_of(files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return check(Tree(root, {"train": {"--seed"}}, [("math sum", ["slow"])],
                              {"tools/lockstep"}, {"relu": {"slope", "name", "from"}, "elu": {"slope"}}))[0]

    wrong = ["a clean tree is refused: " + fault for fault in faults_of(CLEAN)]
    for path, old, new in BAD:
        assert old in CLEAN[path]
        if not faults_of(dict(CLEAN, **{path: CLEAN[path].replace(old, new, 1)})):
            wrong.append("not found: %r in place of %r" % (new, old))
    return wrong, len(BAD) + 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults, seen = self_test()
    elif len(sys.argv) == 4:
        faults, seen = check(real_tree(*map(os.path.abspath, sys.argv[1:])))
    else:
        sys.exit(__doc__)
    for fault in faults:
        print(fault)
    print("%d looked at, %d faults" % (seen, len(faults)))
    sys.exit(1 if faults or seen == 0 else 0)


main()
