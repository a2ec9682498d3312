# This file runs once, when the interpreter is frozen, and prepares the interpreter for untrusted code. Its restrictions only give clear
# errors early. Security depends on the WebAssembly machine, which has no files, network, processes or clock.
#
# Everything is inside a function, so that no code sees its names as globals. The file is compiled under the name <host>.
def prepare():
    import builtins, codecs, gc, io, json, json.decoder, json.encoder, json.scanner, linecache, os, posix, re, sys, time, traceback, types, typing, unicodedata, warnings
    import _imp, _io, _thread

    PUBLIC = ("json", "json.decoder", "json.encoder", "json.scanner", "re", "typing")
    CODECS = ("utf-8", "utf-8-sig", "utf-7", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "ascii", "latin-1", "iso8859-15", "cp1252", "cp437", "cp850",
              "mac-roman", "koi8-r", "unicode-escape", "raw-unicode-escape", "punycode", "rot13")
    NAME, HOST = "<python>", "<host>"

    # Load everything that the library would import lazily.
    for codec in CODECS:
        codecs.lookup(codec)
    exec("'\\N{BULLET}'")
    typing._lazy_load_getattr_static()

    # The public modules as code sees them: all their definitions, without the modules that they import.
    module = types.ModuleType
    facades = {}
    for name in PUBLIC:
        facade = facades[name] = module(name, sys.modules[name].__doc__)
        vars(facade).update((k, v) for k, v in vars(sys.modules[name]).items()
                            if not isinstance(v, module) and k not in ("__builtins__", "__cached__", "__file__", "__loader__", "__path__", "__spec__"))
    for name in PUBLIC:
        package, dot, tail = name.rpartition(".")
        if dot:
            setattr(facades[package], tail, facades[name])

    # The library's own modules may import every loaded module. They are recognized by their globals.
    private = {name: m for name, m in sys.modules.items() if name not in ("_imp", "_io", "_thread", "gc", "io", "marshal", "os", "os.path", "posix", "posixpath", "sys", "time")}
    inside = {id(vars(m)) for m in private.values()}

    def guard(name, globals=None, locals=None, fromlist=(), level=0):
        table = private if id(globals) in inside else facades
        if level:
            package = globals.get("__package__") if globals else None
            if not package:
                raise ImportError("attempted relative import with no known parent package")
            parents = package.split(".")
            name = ".".join(parents[:len(parents) - level + 1] + ([name] if name else []))
        if name not in table:
            raise ModuleNotFoundError("'%s' cannot be imported here; import only json, re and typing" % (name,), name=str(name))
        return table[name if fromlist else name.partition(".")[0]]

    def refuse(*args, **kwargs):
        raise PermissionError("files, network and processes are not available here")

    def leave(code=None):
        raise SystemExit(code)

    # The audit hook refuses all events except these. A hook cannot be removed.
    fine = frozenset(("builtins.id", "builtins.input", "builtins.input/result", "code.__new__", "compile", "exec", "function.__new__", "object.__delattr__", "object.__getattr__",
                      "object.__setattr__", "sys._getframe", "sys._getframemodulename", "sys.excepthook", "sys.unraisablehook"))

    def hook(event, args):
        if event not in fine:
            raise PermissionError("%s is not allowed here" % event)

    # Functions that run needs, read before their modules are emptied.
    read, write, clock, collect, freeze = posix.read, posix.write, time.time, gc.collect, gc.freeze
    quote, frames, clear = json.encoder.c_encode_basestring_ascii, traceback.TracebackException.from_exception, traceback.clear_frames
    cache, purge, modules = linecache.cache, re.purge, sys.modules
    linecache.updatecache = lambda filename, module_globals=None: []

    def stream(fd, errors):
        s = io.TextIOWrapper(io.BufferedWriter(io.FileIO(fd, "w", closefd=False)), "utf-8", errors, "\n", True)
        s.mode = "w"
        return s

    out, err = stream(1, "strict"), stream(2, "backslashreplace")
    sys.stdout = sys.__stdout__ = out
    sys.stderr = sys.__stderr__ = err

    def where(e):
        if isinstance(e, SyntaxError) and e.filename == NAME:
            return e.lineno or 0
        line, tb = 0, e.__traceback__
        while tb is not None:
            if tb.tb_frame.f_code.co_filename == NAME:
                line = tb.tb_lineno
            tb = tb.tb_next
        return line

    def trim(e):
        """trim removes the frames of this file from the tracebacks of an exception and of its causes."""
        for _ in range(100):  # the chain of causes may be cyclic
            if e is None:
                break
            tb = e.__traceback__
            while tb is not None and tb.tb_frame.f_code.co_filename == HOST:
                tb = tb.tb_next
            e.__traceback__ = tb
            while tb is not None and tb.tb_next is not None:
                if tb.tb_next.tb_frame.f_code.co_filename == HOST:
                    tb.tb_next = None
                tb = tb.tb_next
            e = e.__cause__ or e.__context__

    def short(e):
        try:
            return "" + str(e)[:2000]
        except BaseException:
            return "the exception cannot be converted to text"

    def report(e, globals):
        """report writes the traceback of an exception to stderr, and returns the exception as JSON."""
        if isinstance(e, MemoryError):  # free the code's objects to get memory for the report
            globals.clear()
            clear(e.__traceback__)
        name, message, line = type(e).__name__[:200], short(e), where(e)
        try:
            trim(e)
            text = "".join(frames(e, compact=True).format())
        except BaseException:
            text = name + ": " + message + "\n"
        try:
            err.write(text)
        except BaseException:
            pass
        return '{"exit": 1, "error": {"type": %s, "message": %s, "line": %d}}' % (quote(name), quote(message), line)

    def status(e):
        """status returns the exit code of a SystemExit, as python does."""
        if e.code is None:
            return 0
        if isinstance(e.code, int):
            return int(e.code) & 0xFF
        err.write(str(e.code) + "\n")
        return 1

    def execute(source):
        """execute runs code, and returns how it ended as JSON."""
        main = modules["__main__"] = module("__main__")
        globals = vars(main)
        globals["__builtins__"] = builtins
        end = '{"exit": 0}'
        try:
            text = source.decode()
            cache[NAME] = (len(text), None, (text + "\n").splitlines(True), NAME)
            exec(compile(text, NAME, "exec", dont_inherit=True), globals)
        except SystemExit as e:
            try:
                end = '{"exit": %d}' % status(e)
            except BaseException as worse:
                end = report(worse, globals)
        except BaseException as e:
            end = report(e, globals)
        for s in (out, err):
            try:
                s.flush()
            except BaseException:
                pass
        return end

    def run():
        """run is the entry point of the frozen interpreter. It reads code from file 0 and writes how it ended to file 0."""
        parts = []
        while part := read(0, 65536):
            parts.append(part)
        write(0, execute(b"".join(parts)).encode())

    # Run some code, with errors of several kinds, so that the interpreter does its lazy initialization now.
    for source in (b"import json, re, typing\nprint(json.dumps(json.loads('[1, {\"a\": null}]'), indent=1), re.findall(r'(\\w+)', 'a b'), typing.Optional[int])",
                   b"def f(n):\n    return 1 / n\ntry:\n    f(0)\nexcept ZeroDivisionError:\n    {}['\xc3\xa9']", b"def f(:", b"class A:\n    x: int = 1\nprnt(A)", b"'\\d'", b"raise SystemExit('x')"):
        execute(source)
    purge()
    cache.clear()

    own = globals()["__builtins__"]
    del own["__import__"], own["open"]
    builtins.__import__ = guard
    builtins.open = refuse
    builtins.exit = builtins.quit = leave
    for m, names in ((_imp, [n for n in vars(_imp) if n.startswith(("create_", "exec_", "get_frozen", "init_", "find_", "_fix"))]), (_thread, ("start_new_thread", "start_new")), (io, ("open", "open_code")),
                     (_io, ("open", "open_code"))):
        for name in names:
            vars(m).pop(name, None)
    for name in [n for n, v in vars(os).items() if callable(v) and n not in ("fspath", "PathLike")] + ["environ", "environb"]:
        vars(os).pop(name, None)
    vars(posix).clear()
    sys.meta_path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    sys.path.clear()
    sys.argv[:] = sys.orig_argv[:] = ["python"]
    sys.modules.clear()
    sys.modules.update(facades, builtins=builtins, warnings=warnings)
    sys.addaudithook(hook)
    collect()
    freeze()
    write(0, b"%d" % id(run))
    clock()  # command freeze captures the image here


prepare()
