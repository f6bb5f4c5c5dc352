"""Runs the code that comes on standard input, as a notebook would: what its last
expression is worth is written down, and a traceback shows nothing of this file."""

import sys

NAME = "<code>"
PACKAGES = "/site-packages"
STAND_INS = ["requests", "httpx", "httpx2"]


def remember(value):
    text = repr(value)
    if len(text) > 50_000:
        text = text[:50_000] + f"... ({len(text)} characters)"
    with open("/dev/haft/result", "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def prefer_installed():
    """Makes an installed package replace the stand-in of the same name that comes with
    this Python. Everything else of the standard library stays first, as usual."""
    from importlib.machinery import PathFinder

    def installed(name):
        return PathFinder.find_spec(name, [PACKAGES])

    names = [name for name in STAND_INS if installed(name)]
    for module in list(sys.modules):
        if module.partition(".")[0] in names:
            del sys.modules[module]

    class Installed:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return installed(name) if name in names else None

    if names:
        sys.meta_path.insert(0, Installed)


def run():
    import ast
    import linecache
    import types

    source = sys.stdin.buffer.read().decode("utf-8", "replace")
    linecache.cache[NAME] = (len(source), None, source.splitlines(True), NAME)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = [""]
    sys.path[0] = ""
    sys.path.append(PACKAGES)
    prefer_installed()
    try:
        tree = ast.parse(source, NAME)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, NAME, "exec"), main.__dict__)
        if last is not None:
            value = eval(compile(last, NAME, "eval"), main.__dict__)
            if value is not None:
                remember(value)
    except SystemExit:
        raise
    except BaseException as error:
        import traceback

        sys.stdout.flush()
        place = error.__traceback__
        while place is not None and place.tb_frame.f_code.co_filename != NAME:
            place = place.tb_next
        traceback.print_exception(type(error), error, place)
        sys.exit(1)


run()
