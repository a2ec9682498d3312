package py_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/internal/sandbox/py"
)

// TestI11_TheLanguageIsPython runs typical code.
func TestI11_TheLanguageIsPython(t *testing.T) {
	p := newPool(t, py.Config{})
	for source, want := range map[string]string{
		"":                                    "",
		"print('hi', 1 + 1)":                  "hi 2\n",
		"x = 3.14159\nprint(f'{x:.2f} {x=}')": "3.14 x=3.14159\n",
		"def f(x):\n  match x:\n    case {'t': 'a', 'v': v}: return v\n    case [a, *r]: return (a, " +
			"r)\nprint(f({'t': 'a', 'v': 9}), f([1, 2]))": "9 (1, [2])\n",
		"import json\nprint(json.dumps({'b': [1, None, 'é'], 'a': 1}, indent=1, sort_keys=True, ensure_ascii=False))": "{\n \"a\": 1,\n \"b\": [\n  1,\n  null,\n  \"é\"\n ]\n}\n",
		"import json\ntry: json.loads('{')\nexcept json.JSONDecodeError as e: print(e.pos, e.msg)":                    "1 Expecting property name enclosed in double quotes\n",
		"from json.decoder import JSONDecodeError\nfrom json import encoder\nprint(JSONDecodeError.__name__, " +
			"encoder.JSONEncoder().encode(1))": "JSONDecodeError 1\n",
		"import json.decoder as d, re as r\nprint(d.JSONDecoder().decode('[2]'), r.escape('.'))":                                                     "[2] \\.\n",
		`import re` + "\n" + `print(re.sub(r'(?P<y>\d{4})-(\d\d)', r'\2/\g<y>', '2024-05'), re.findall(r'\w+', 'a, b'), re.split(r'[,;]', 'a,b;c'))`: "05/2024 ['a', 'b'] ['a', 'b', 'c']\n",
		"import re\nprint(re.compile('(a)|b', re.I | re.X).search('xB').span(), re.RegexFlag.I, " +
			"re.Scanner([('[a-z]+', lambda s, x: x)]).scan('ab'))": "(1, 2) re.IGNORECASE (['ab'], '')\n",
		"from typing import *\nclass P(NamedTuple):\n  x: int\n  y: int = 0\nclass D(TypedDict):\n  a: " +
			"int\nprint(P(1), get_type_hints(P)['y'], D(a=1))": "P(x=1, y=0) <class 'int'> {'a': 1}\n",
		"import typing as t\n@t.runtime_checkable\nclass P(t.Protocol):\n  def f(self): ...\nclass A:\n  def " +
			"f(self): pass\nprint(isinstance(A(), P))": "True\n",
		"def first[T](xs: list[T]) -> T: return xs[0]\ntype Pair = tuple[int, int]\nprint(first([7]), Pair.__value__)": "7 tuple[int, int]\n",
		"class A:\n  @property\n  def d(self): return 2\n  def __repr__(self): return 'A!'\nprint(A().d, A(), " +
			"__name__, A.__module__)": "2 A! __main__ __main__\n",
		"try: raise ExceptionGroup('g', [ValueError(1)])\nexcept* ValueError as e: print('V')": "V\n",
		"print('日本語', '\\N{GREEK SMALL LETTER ALPHA}', 'é'.encode('latin-1'), '€'.encode('cp1252'), " +
			"b'\\xff'.decode('utf-8', 'replace'))": "日本語 α b'\\xe9' b'\\x80' \ufffd\n",
		"print(2 ** 100, 10 ** 20 // 7, sum(range(10**5)), sorted([3, 1, 2]), {1, 2} | {3}, round(2.5), divmod(7, " +
			"2), int('ff', 16))": "1267650600228229401496703205376 14285714285714285714 4999950000 [1, 2, 3] {1, 2, " +
			"3} 2 (3, 1) 255\n",
		"def g():\n  yield from (i * i for i in range(4))\nprint(list(g()), (n := 5) + n, *map(str, [1]))": "[0, 1, 4, 9] 10 1\n",
		"async def f(): return 5\nc = f()\ntry: c.send(None)\nexcept StopIteration as e: print(e.value)":   "5\n",
		"print('a\\tb', end='|')\nprint(*'xy', sep='-', flush=True)":                                       "a\tb|x-y\n",
		"print(eval('1+1'), (lambda: 2)())\nexec('y = 3')\nprint(y)":                                       "2 2\n3\n",
		"try:\n  import numpy\nexcept ImportError: print('without')":                                       "without\n",
	} {
		prints(t, p, source, want)
	}
}

// TestI11_ResultHasOutputAndExit checks the output, exit code and exception of code that ends in different ways.
func TestI11_ResultHasOutputAndExit(t *testing.T) {
	p := newPool(t, py.Config{})
	r := fails(t, p, "print('before')\ndef f(n):\n    return 1 / n\nf(0)", "ZeroDivisionError")
	if string(r.Stdout) != "before\n" || r.Exception.Line != 3 || r.Exception.Message != "division by zero" {
		t.Errorf("%+v %q", r.Exception, r.Stdout)
	}
	want := "Traceback (most recent call last):\n  File \"<python>\", line 4, in <module>\n    f(0)\n  File " +
		"\"<python>\", line 3, in f\n    return 1 / n\n           ~~^~~\nZeroDivisionError: division by zero\n"
	if string(r.Stderr) != want {
		t.Errorf("stderr is\n%s", r.Stderr)
	}
	if r := fails(t, p, "x = 1\ndef f(:\n  pass", "SyntaxError"); r.Exception.Line != 2 {
		t.Errorf("%+v", r.Exception)
	}
	if r := fails(t, p, "prnt(1)", "NameError"); !strings.Contains(string(r.Stderr), "Did you mean: 'print'?") {
		t.Errorf("%s", r.Stderr)
	}
	fails(t, p, "try:\n  1/0\nexcept ZeroDivisionError as e:\n  raise ValueError('no') from e", "ValueError")
	fails(t, p, "class E(Exception):\n  def __str__(self): raise E()\nraise E()", "E")
	fails(t, p, "e = ValueError('round')\ne.__context__ = e.__cause__ = e\nraise e", "ValueError")
	fails(t, p, "input('name? ')", "EOFError")
	fails(t, p, "raise KeyboardInterrupt", "KeyboardInterrupt")
	fails(t, p, "x = 1\x00", "SyntaxError")
	for source, exit := range map[string]int{"raise SystemExit": 0, "raise SystemExit(3)": 3, "exit(4)": 4, "quit()": 0,
		"exit('words')": 1, "raise SystemExit(-1)": 255, "raise SystemExit(10**30)": 255, "raise SystemExit(True)": 1} {
		if r := run(t, p, source); r.ExitCode != exit && exit != 255 || r.Exception != nil || r.ExitCode < 0 ||
			r.ExitCode > 255 {
			t.Errorf("%s ended with %d and %+v", source, r.ExitCode, r.Exception)
		}
	}
	if r := run(t, p, "exit('words')"); string(r.Stderr) != "words\n" {
		t.Errorf("%q", r.Stderr)
	}
	if r := run(t, p, "import re\nprint('\\d')"); r.ExitCode != 0 ||
		!strings.Contains(string(r.Stderr), "SyntaxWarning") {
		t.Errorf("%+v %s", r.Exception, r.Stderr)
	}
	// The end is reported even if the code has removed built-in functions.
	for _, name := range []string{"isinstance", "str", "type", "len", "range", "BaseException", "SystemExit", "compile",
		"print"} {
		fails(t, p, "__builtins__."+name+" = None\n{}['missing']", "KeyError")
	}
	fails(t, p, "import json\njson.dumps.__globals__.clear()\n{}['missing']", "KeyError")
	fails(t, p, "import typing\nsys = "+
		"typing.get_type_hints.__globals__['sys']\nsys.modules.clear()\nsys.stderr.close()\n{}['missing']", "KeyError")
	works(t, p)
}

// TestI11_RunsAreDeterministic checks that two runs of the same code give the same output. There is no clock,
// randomness or state.
func TestI11_RunsAreDeterministic(t *testing.T) {
	p := newPool(t, py.Config{})
	const source = "print(hash('a'), id(object()), object(), {'b', 'a', 'c'}, [c.__name__ for c in " +
		"object.__subclasses__()][-1])"
	first := run(t, p, source)
	for range 5 {
		if again := run(t, p, source); string(again.Stdout) != string(first.Stdout) {
			t.Errorf("%s\n%s", first.Stdout, again.Stdout)
		}
	}
}

// TestI11_RunsShareNoState changes the interpreter's state in every way, and finds no change in the next run of the
// same worker.
func TestI11_RunsShareNoState(t *testing.T) {
	p := newPool(t, py.Config{Max: 1})
	for _, source := range []string{
		"import json\njson.dumps = lambda *a, **k: 'HACKED'\njson.decoder.JSONDecoder = None\n__builtins__.marker = " +
			"1\nx = 5",
		"import json\njson.dumps.__globals__['_default_encoder'] = None\njson.JSONEncoder.encode = lambda *a: " +
			"'HACKED'\nglobals()['marker'] = 1",
		"__builtins__.print = None",
		"__builtins__.__import__ = None",
		"import typing\ntyping.List = None\ntyping.get_type_hints.__globals__['sys'].stdout = None",
		"import typing\ntyping.get_type_hints.__globals__['sys'].setrecursionlimit(20)",
		"import re\nre.compile.__globals__['_cache2'].clear()\nre.compile.__globals__['_cache2'] = None",
		"import typing\ntyping.get_type_hints.__globals__['sys'].modules.clear()",
		"raise MemoryError",
	} {
		run(t, p, source)
		prints(t, p, "import json, re, typing\nprint(json.dumps([1]), re.findall('a', 'a'), typing.List[int], "+
			"json.loads('[2]'))\nprint([n in globals() or n in dir(__builtins__) for n in ('marker', 'x')])",
			"[1] ['a'] typing.List[int] [2]\n[False, False]\n")
	}
}

func TestBadInput(t *testing.T) {
	p := newPool(t, py.Config{})
	for name, c := range map[string]struct {
		code   py.Code
		limits py.Limits
		want   reeve.Code
	}{
		"not UTF-8":   {py.Code{Source: "'\xff'"}, py.Limits{}, reeve.Validation},
		"too long":    {py.Code{Source: "#" + strings.Repeat("x", py.MaxSource)}, py.Limits{}, reeve.TooLarge},
		"time":        {py.Code{}, py.Limits{Time: -1}, reeve.Validation},
		"memory":      {py.Code{}, py.Limits{Memory: 1}, reeve.Validation},
		"more memory": {py.Code{}, py.Limits{Memory: py.DefaultMemory + 1}, reeve.Validation},
		"output":      {py.Code{}, py.Limits{Output: -1}, reeve.Validation},
	} {
		if _, err := p.Run(t.Context(), c.code, c.limits); reeve.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
