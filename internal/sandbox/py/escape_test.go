package py_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reeve/internal/sandbox/py"
)

// walk is Python code that reaches the internals of the library, because every function refers to its module's globals.
const walk = `
import json, re, typing
G = typing.get_type_hints.__globals__
B = G['__builtins__'] if isinstance(G['__builtins__'], dict) else vars(G['__builtins__'])
sys = G['sys']
def classes(c=object, seen=set()):
    for s in type.__subclasses__(c):
        if s not in seen:
            seen.add(s)
            yield s
            yield from classes(s)
def named(*names): return [c for c in classes() if c.__name__ in names]
def attempt(f, *args):
    try: r = f(*args)
    except BaseException as e: return repr(e)
    if r is not None: print('ESCAPED', repr(r)[:200])
NAMES = [n for n in sorted(sys.stdlib_module_names) if n not in ('json', 're', 'typing')]
`

// probes try to escape. A probe that succeeds prints ESCAPED or the content of the canary file, or has an effect
// outside.
var probes = map[string]string{
	// Import modules that are not available, in every way.
	"import os":               "import os\nprint('ESCAPED')",
	"from os import":          "from os import system\nprint('ESCAPED')",
	"import as":               "import subprocess as s\nprint('ESCAPED')",
	"import submodule":        "import os.path\nprint('ESCAPED')",
	"import json.tool":        "import json.tool\nprint('ESCAPED')",
	"import re private":       "import re._compiler\nprint('ESCAPED')",
	"from json import codecs": "from json import codecs\nprint('ESCAPED')",
	"from typing import sys":  "from typing import sys\nprint('ESCAPED')",
	"relative import":         "from . import os\nprint('ESCAPED')",
	"faked package": "exec('from . import path', {'__package__': 'os', '__name__': 'os', '__builtins__': " +
		"__builtins__})\nprint('ESCAPED')",
	"faked name": "exec('import os', {'__name__': 'typing', '__package__': '', '__builtins__': " +
		"__builtins__})\nprint('ESCAPED')",
	"every name":         walk + "for n in NAMES: attempt(__import__, n)",
	"every name by exec": walk + "for n in NAMES: attempt(exec, 'import ' + n)",
	"every name, from within": walk +
		"for n in ('os', 'posix', 'io', '_io', 'sys', 'time', 'gc', '_thread', '_imp', 'marshal', 'socket', " +
		"'ctypes', 'subprocess', 'importlib', 'inspect', 'builtins'): attempt(exec, 'import ' + n + ' as x\\nif " +
		"x.__name__ != \"builtins\" or True: pass\\nassert hasattr(x, \"system\") or hasattr(x, \"open\") and x.open " +
		"is not open or hasattr(x, \"socket\") or hasattr(x, \"get_objects\")', G)",
	"builtins' import": walk + "attempt(B['__import__'], 'os')\nattempt(vars(__builtins__)['__import__'], 'posix')",
	"import as a str": walk +
		"class S(str):\n  def __eq__(s, o): return True\n  def __hash__(s): return hash('json')\nx = " +
		"__import__(S('os'))\nattempt(lambda: x.system)",
	"name that lies": walk +
		"class S(str):\n  def partition(s, x): return ('os', '', '')\nx = __import__(S('json'))\nattempt(lambda: " +
		"x.system)",
	"fromlist that lies": walk +
		"class F(tuple):\n  def __bool__(s): return False\nx = __import__('json.decoder', None, None, " +
		"F(('x',)))\nattempt(lambda: x.os)",
	"sys.modules": walk +
		"for n in ('os', 'posix', '_io', '_imp', '_thread', 'sys', 'time', 'gc'): attempt(sys.modules.__getitem__, n)",
	"facade's insides": "import json, re, typing\nfor m in (json, re, typing, json.decoder, json.encoder, " +
		"json.scanner):\n  for k, v in vars(m).items():\n    if type(v) is type(json) and not " +
		"v.__name__.startswith('json'): print('ESCAPED', m, k)",
	"loader of a module": walk +
		"attempt(lambda: G['__loader__'].get_data(CANARY))\nattempt(lambda: G['__spec__'].loader.get_source('typing'))",
	"loaders": walk +
		"for c in named('SourceFileLoader', 'SourcelessFileLoader', 'ExtensionFileLoader', '_NamespaceLoader', " +
		"'NamespaceLoader'):\n  for n in ('os', 'socket'):\n    attempt(lambda: c(n, " +
		"'/usr/local/lib/python3.12/%s.py' % n).load_module(n))\n    attempt(lambda: c(n, CANARY).get_data(CANARY))",
	"finders": walk +
		"for c in named('FileFinder', 'PathFinder'):\n  attempt(lambda: c.find_spec('os', " +
		"['/usr/local/lib/python3.12']).loader)\n  attempt(lambda: " +
		"c('/usr/local/lib/python3.12').find_spec('os').loader)",
	"builtin importer": walk +
		"for c in named('BuiltinImporter', 'FrozenImporter'):\n  for n in ('posix', '_socket', '_testcapi', 'gc', " +
		"'_sqlite3', '_thread', 'os', 'marshal', 'faulthandler'):\n    attempt(lambda: c.load_module(n).__name__)\n  " +
		"  attempt(lambda: c.create_module(c.find_spec(n)).__name__)",
	"zip importer": walk + "for c in named('zipimporter'): attempt(lambda: c(CANARY))",
	"import system's own": walk +
		"I = named('BuiltinImporter')[0].find_spec.__func__.__globals__\nattempt(lambda: " +
		"I['_gcd_import']('os'))\nattempt(lambda: I['_find_and_load']('os', I['_gcd_import']))\nattempt(lambda: " +
		"I['__import__']('os'))\nattempt(lambda: I['_load'](I['ModuleSpec']('posix', named('BuiltinImporter')[0], " +
		"origin='built-in')))\nattempt(lambda: I['_imp'].create_builtin(I['ModuleSpec']('posix', " +
		"None)))\nattempt(lambda: I['_imp'].create_dynamic(I['ModuleSpec']('x', None, " +
		"origin=CANARY)))\nattempt(lambda: I['_imp'].get_frozen_object('os'))",
	"put the finders back": walk +
		"I = named('BuiltinImporter')[0].find_spec.__func__.__globals__\nsys.meta_path.extend([named('BuiltinImporter')[0], named('FrozenImporter')[0], *named('PathFinder')])\nsys.path.append('/usr/local/lib/python3.12')\nattempt(lambda: I['_gcd_import']('os').system)\nattempt(lambda: I['_gcd_import']('_socket').socket)\nattempt(lambda: I['_gcd_import']('ctypes'))",
	"take the guard away": walk + "vars(__builtins__).pop('__import__')\nattempt(exec, 'import os')",
	"breakpoint":          "breakpoint()\nprint('ESCAPED')",
	"help":                "help()\nprint('ESCAPED')",

	// Files.
	"open":             "print(open(CANARY).read())",
	"open for writing": "open(CANARY, 'w').write('x')",
	"builtins' open":   walk + "attempt(lambda: B['open'](CANARY).read())",
	"codecs.open": walk +
		"attempt(lambda: json.dumps.__globals__['codecs'].open(CANARY).read())\nattempt(lambda: " +
		"json.loads.__globals__['codecs'].open(CANARY, 'w'))",
	"FileIO": walk +
		"for c in named('FileIO'):\n  for p in (CANARY, '/etc/passwd', '/proc/self/environ', '..', '/', " +
		"b'/etc/passwd', '/usr/local/lib/python3.12/os.py', 0, 1, 3, 4):\n    attempt(lambda: c(p).read(100))\n    " +
		"attempt(lambda: c(p, 'w').write(b'x'))\n    attempt(lambda: c(p, opener=lambda *a: 3))",
	"stdout's class": walk +
		"t = type(sys.stdout.buffer.raw)\nattempt(lambda: t(CANARY).read())\nattempt(lambda: " +
		"t.__new__(t).__init__(CANARY))\nattempt(lambda: sys.stdout.buffer.raw.__init__(CANARY))",
	"io's functions": walk +
		"io = json.loads.__globals__['codecs'].open.__globals__.get('io')\nattempt(lambda: " +
		"io.open(CANARY).read())\nattempt(lambda: io.open_code(CANARY).read())\nattempt(lambda: io.OpenWrapper(CANARY))",
	"os, if it is left": walk +
		"import json\nfound = [m for c in classes() for m in [getattr(getattr(c, '__init__', None), '__globals__', " +
		"{}).get('os')] if m]\nfor m in found:\n  for n in ('system', 'open', 'listdir', 'popen', 'fork', 'execv', " +
		"'spawnv', 'kill', 'environ', 'scandir', 'remove', 'mkdir', 'pipe', 'dup', 'fdopen', 'walk', 'getenv', " +
		"'chdir', 'stat', 'symlink', 'urandom', 'putenv'): attempt(getattr, m, n)",
	"posix functions": walk +
		"E = named('SourceFileLoader')[0].get_filename.__globals__\np = E['_os']\nfor n in ('open', 'listdir', " +
		"'stat', 'system', 'fork', 'environ', 'remove', 'write', 'read', 'dup', 'kill', '_exit', 'getpid'): " +
		"attempt(getattr, p, n)\nattempt(lambda: E['_path_stat'](CANARY))\nattempt(lambda: " +
		"E['_write_atomic'](CANARY, b'x'))\nattempt(lambda: E['_path_isfile'](CANARY) or 1/0)",
	"wrap_close": walk +
		"for c in named('_wrap_close', '_Environ', 'Popen', 'CompletedProcess', 'catch_warnings'): attempt(lambda: " +
		"c.__init__.__globals__['system']('id'))\nfor c in named('catch_warnings'): attempt(lambda: " +
		"c.__init__.__globals__['sys'].modules['os'].system('id'))",
	"linecache": walk +
		"for c in classes():\n  g = getattr(getattr(c, '__init__', None), '__globals__', {})\n  if 'linecache' in g: " +
		"attempt(lambda: g['linecache'].updatecache('/etc/passwd')[0]); attempt(lambda: " +
		"g['linecache'].getlines(CANARY)[0]); attempt(lambda: g['linecache'].tokenize.open(CANARY).read())",
	"warnings' route": walk +
		"w = [c for c in named('catch_warnings')][0].__init__.__globals__\nattempt(lambda: " +
		"w['sys'].modules['linecache'].getline('/etc/passwd', 1)[0])",
	"traceback's route": "def f(): raise ValueError\ncode = f.__code__.replace(co_filename=CANARY)\nexec(code)",
	"syntax error file": "raise SyntaxError('x', (CANARY, 1, 1, None))",
	"typing.IO": walk +
		"attempt(lambda: typing.IO.__class__(CANARY).read())\nattempt(lambda: typing.TextIO.open(CANARY))",
	"license and help": "for n in ('license', 'credits', 'copyright', 'help'):\n  try: print('ESCAPED', " +
		"vars(__builtins__)[n]._Printer__filenames)\n  except Exception: pass",

	// Network.
	"socket": "import socket\nsocket.create_connection(('127.0.0.1', PORT))\nprint('ESCAPED')",
	"_socket": walk + "attempt(lambda: " +
		"named('BuiltinImporter')[0].load_module('_socket').socket().connect(('127.0.0.1', PORT)))",
	"urllib, http": "for n in ('urllib.request', 'http.client', 'ssl', 'asyncio', 'ftplib', 'smtplib', " +
		"'xmlrpc.client', 'select'):\n  try: __import__(n); print('ESCAPED')\n  except ImportError: pass",

	// Processes, threads, signals, native code.
	"subprocess": "import subprocess\nprint('ESCAPED', subprocess.run(['id']))",
	"fork":       walk + "attempt(lambda: sys.modules['posix'].fork())",
	"threads":    "import threading\nthreading.Thread(target=print, args=('ESCAPED',)).start()",
	"_thread": walk + "F = named('_ModuleLock')[0].__init__.__globals__\nattempt(lambda: " +
		"F['_thread'].start_new_thread(print, ('x',)))\nattempt(lambda: F['_thread'].start_new(print, " +
		"('x',)))\nattempt(lambda: F['_thread'].interrupt_main())",
	"signal":       "import signal\nsignal.raise_signal(9)\nprint('ESCAPED')",
	"_signal":      walk + "attempt(lambda: named('BuiltinImporter')[0].load_module('_signal').raise_signal(9))",
	"ctypes":       "import ctypes\nprint('ESCAPED', ctypes.CDLL(None))",
	"_ctypes":      walk + "attempt(lambda: named('BuiltinImporter')[0].load_module('_ctypes'))",
	"faulthandler": walk + "attempt(lambda: named('BuiltinImporter')[0].load_module('faulthandler')._sigsegv())",
	"gc":           walk + "attempt(lambda: sys.modules['gc'].get_objects())\nattempt(lambda: sys.gc)",
	"settrace": walk + "attempt(lambda: sys.settrace(lambda *a: None))\nattempt(lambda: sys.setprofile(lambda " +
		"*a: None))",
	"own hook": walk + "seen = []\nsys.addaudithook(lambda e, a: seen.append(e))\nexec('1')\nif seen: " +
		"print('ESCAPED')",
	"atexit": walk + "attempt(lambda: __import__('atexit').register(print, 'x'))",
	"subinterpreter": walk + "for n in ('_xxsubinterpreters', '_interpreters', '_testinternalcapi', '_testcapi'): " +
		"attempt(lambda: named('BuiltinImporter')[0].load_module(n))",
	"sys's doors": walk + "for n in ('_debugmallocstats', 'activate_stack_trampoline', 'call_tracing', " +
		"'set_asyncgen_hooks', '_getquickenedcount', 'setdlopenflags', 'getandroidapilevel'): getattr(sys, n, " +
		"None)\nattempt(lambda: sys.activate_stack_trampoline('perf'))",
	"argv, environ": walk + "if sys.argv != ['python'] or sys.orig_argv != ['python'] or getattr(sys, '_git', 0) " +
		"and CANARY in str(vars(sys)): print('ESCAPED', sys.argv)",

	// Stack frames of the interpreter's own code.
	"frames below": walk +
		"f = sys._getframe()\nwhile f:\n  for n, v in f.f_locals.items():\n    if n in ('write', 'read'): " +
		"attempt(lambda: v(CANARY)); attempt(lambda: v(3, 10)); attempt(lambda: v(5, b'x'))\n    if n in ('posix', " +
		"'os') and hasattr(v, 'system'): print('ESCAPED', n)\n    if n == 'gc' and not hasattr(v, 'get_objects'): " +
		"print('?')\n  f = f.f_back",
	"exception's frames": "try: open('x')\nexcept PermissionError as e:\n  tb = e.__traceback__\n  while tb:\n    f " +
		"= tb.tb_frame\n    while f:\n      for n, v in f.f_globals.items():\n        if type(v).__name__ == " +
		"'module' and n in ('os', 'posix', 'sys', 'io'): print('ESCAPED', n)\n      f = f.f_back\n    tb = tb.tb_next",
	"generator's frame": "g = (g.gi_frame.f_back.f_back for _ in [1])\nf = next(g)\nwhile f:\n  if " +
		"hasattr(f.f_locals.get('posix'), 'system'): print('ESCAPED')\n  f = f.f_back",
	"report forged": walk +
		"f = sys._getframe()\nwhile f:\n  w = f.f_locals.get('write')\n  if w: w(0, b'{\"exit\": 77}'); w(1, " +
		"b'raw'); w(2, b'raw')\n  f = f.f_back",
	"host's own builtins": walk +
		"for f in (open, exit, __import__):\n  g = f.__globals__['__builtins__']\n  attempt(lambda: " +
		"g['open'](CANARY).read())\n  attempt(lambda: g['__import__']('os'))\n  attempt(lambda: " +
		"f.__builtins__['__import__']('os'))",
	"closure cells": "def walk(f, seen):\n  for c in f.__closure__ or ():\n    v = c.cell_contents\n    if " +
		"id(v) in seen: continue\n    seen.add(id(v))\n    if hasattr(v, '__closure__'): walk(v, seen)\n    if " +
		"type(v).__name__ == 'module' and v.__name__ in ('os', 'posix') and hasattr(v, 'system'): " +
		"print('ESCAPED')\nfor f in (open, exit, __import__): walk(f, set())",
	"guard's tables": "cells = {n: c.cell_contents for n, c in zip(__import__.__code__.co_freevars, " +
		"__import__.__closure__)}\nfor n in cells.get('private', {}):\n  m = cells['private'][n]\n  for bad in " +
		"('system', 'fork', 'FileIO', 'create_builtin', 'start_new_thread', 'get_objects', 'socket'):\n    if " +
		"hasattr(m, bad) and n not in ('builtins',): print('ESCAPED', n, bad)",
	"guard widened": walk +
		"cells = {n: c for n, c in zip(__import__.__code__.co_freevars, " +
		"__import__.__closure__)}\ncells['facades'].cell_contents['os'] = 1\nimport os\nattempt(lambda: os.system)",

	// Attempts to break the interpreter.
	"bad bytecode": "def f(): pass\nf.__code__ = f.__code__.replace(co_code=b'\\x64\\xff' * 50, " +
		"co_consts=())\nprint(f())",
	"bad stack": "def f(): pass\nf.__code__ = f.__code__.replace(co_code=b'\\x01\\x00' * 400 + b'S\\x00', " +
		"co_stacksize=0)\nprint(f())",
	"code by hand": "C = type((lambda: 0).__code__)\nc = C(0, 0, 0, 0, 10, 0, bytes([116, 255, 100, 255] * 20), " +
		"(), (), (), 'x', 'f', 'f', 1, b'', b'')\nexec(c)",
	"type confusion": "class A: __slots__ = ('x',)\nclass B(A): pass\ntry: A.x.__set__(5, 1)\nexcept TypeError: " +
		"pass\nobject.__new__(type('T', (), {'__del__': lambda s: 1/0}))",
	"deep recursion":   walk + "sys.setrecursionlimit(10**6)\ndef f(n): return f(n + 1)\nf(0)",
	"deep C recursion": walk + "sys.setrecursionlimit(10**6)\nclass A:\n  def __repr__(s): return repr(s)\nrepr(A())",
	"deep data":        "x = []\nfor i in range(50000): x = [x]\nprint(len(repr(x)))",
	"deep json":        "import json\njson.loads('[' * 100000)",
	"deep source":      "exec('-' * 100000 + '1')",
	"deep parens":      "eval('(' * 500 + '1' + ')' * 500)",
	"deep re":          "import re\nre.compile('(' * 3000 + ')' * 3000)",
	"re bytecode": walk +
		"s = re.compile.__globals__['_compiler']._sre\nfor code in ([1, 2, 3], [0xffffffff] * 50, list(range(60))): " +
		"attempt(lambda: s.compile('x', 0, code, 0, {}, ()).match('abc').group() and None) if False else None\ntry: " +
		"s.compile('x', 0, [19, 4294967295], 1, {}, (None,)).match('a' * 100)\nexcept Exception: pass",
	"buffer tricks": "b = bytearray(10)\nm = memoryview(b)\ntry: b.extend(b'x' * 100)\nexcept BufferError: " +
		"pass\ntry: m.cast('Q')[0]\nexcept Exception: pass",
	"finalizers": "class A:\n  def __del__(s): print('ESCAPED' if 0 else '')\n    \nA()\ntry: raise " +
		"ValueError\nfinally: pass",
}

// TestI11_NothingGetsOut runs every probe and checks its output and its effects outside. The run after each probe
// works.
func TestI11_NothingGetsOut(t *testing.T) {
	if len(probes) < 80 {
		t.Errorf("only %d probes", len(probes))
	}
	dir := t.TempDir()
	canary := filepath.Join(dir, "canary")
	const secret = "nobody-may-read-this"
	if err := os.WriteFile(canary, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	p := newPool(t, py.Config{})
	head := "CANARY = '" + canary + "'\nPORT = " + port + "\n"
	for name, code := range probes {
		r, err := p.Run(context.Background(), py.Code{Owner: "w", Source: head + code},
			py.Limits{Time: 10 * time.Second})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		said := string(r.Stdout) + string(r.Stderr)
		if strings.Contains(string(r.Stdout), "ESCAPED") || strings.Contains(said, secret) ||
			strings.Contains(said, "root:x:") {
			t.Errorf("%s: exit %d\n%.1500s", name, r.ExitCode, said)
		}
		works(t, p)
	}
	if b, err := os.ReadFile(canary); err != nil || string(b) != secret {
		t.Errorf("the canary is %q, %v", b, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("%d connections came out", n)
	}
}
