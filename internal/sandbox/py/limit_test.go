package py_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/sandbox/py"
)

// endless is code that does not end by itself.
var endless = map[string]string{
	"loop":               "while True: pass",
	"loop that catches":  "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
	"regular expression": "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
	"big number":         "9 ** 10 ** 8",
	"big range":          "sum(range(10 ** 15))",
	"print flood":        "while True: print('x' * 1000)",
	"error flood": "import typing\nsys = typing.get_type_hints.__globals__['sys']\nwhile True: " +
		"sys.stderr.write('x' * 1000)",
	"memory in catch": "a = []\nwhile True:\n  try:\n    while True: a.append(bytearray(1 << 20))\n  except " +
		"MemoryError: pass",
	"exit that does not":  "class A:\n  def __str__(s):\n    while True: pass\nraise SystemExit(A())",
	"error that does not": "class A(Exception):\n  def __str__(s):\n    while True: pass\nraise A",
	"generator":           "def g():\n  while True: yield 1\nmax(g())",
	"sort":                "class A:\n  def __lt__(s, o):\n    while True: pass\nsorted([A(), A()])",
	"decoder":             "import json\njson.loads('[1]', parse_int=lambda x: max(iter(int, 1)))",
	"compile":             "while True: exec('x = 1\\n' * 10**4)",
}

// TestI11_TimeLimit runs endless code until its time limit. Its process has ended when Run returns, its output is kept,
// and the next run works.
func TestI11_TimeLimit(t *testing.T) {
	p := newPool(t, py.Config{Keep: -1, Warm: -1})
	for name, source := range endless {
		t.Run(name, func(t *testing.T) {
			r, err := p.Run(t.Context(), py.Code{Source: "print('begun')\n" + source},
				py.Limits{Time: 1500 * time.Millisecond, Output: 10_000})
			if err != nil || !r.TimedOut || r.ExitCode != 137 || r.Duration < 1500*time.Millisecond {
				t.Fatalf("%v, %+v", err, r.Exception)
			}
			if n := children(t); n != 0 {
				t.Errorf("%d processes are left", n)
			}
			if !strings.HasPrefix(string(r.Stdout), "begun\n") || len(r.Stdout) > 10_000 || len(r.Stderr) > 10_000 {
				t.Errorf("%.100q", r.Stdout)
			}
		})
	}
	works(t, p)
}

// TestI11_MemoryIsLimited allocates more than the limit, at once and in many steps.
func TestI11_MemoryIsLimited(t *testing.T) {
	p := newPool(t, py.Config{Memory: 200 << 20})
	for _, source := range []string{
		"x = []\nwhile True: x.append(bytearray(1 << 20))",
		"x = []\nwhile True: x.append([0] * 1000)",
		"x = {}\nwhile True: x[len(x)] = str(len(x))",
		"bytearray(60 << 20)",
		"'x' * (1 << 30)",
		"x = 'ab'\nwhile True: x += x",
		"list(range(10 ** 8))",
		"x = b'x' * (30 << 20)\ny = x + b'y'",
		"import json\njson.dumps(['x' * 1000] * 100000)",
		"import re\nre.findall('a?', 'a' * 10 ** 7)",
		"def f():\n  x = [0] * 10 ** 6\n  f()\nf()",
	} {
		fails(t, p, source, "MemoryError")
		works(t, p)
	}
	prints(t, p, "print(len(bytearray(30 << 20)))", "31457280\n")
	prints(t, p, "try: bytearray(60 << 20)\nexcept MemoryError: print('caught')", "caught\n")
	r, err := p.Run(t.Context(), py.Code{Source: "print(len(bytearray(100 << 20)))"},
		py.Limits{Time: time.Minute, Memory: 200 << 20})
	if err != nil || string(r.Stdout) != "104857600\n" {
		t.Errorf("with more memory: %+v, %v", r, err)
	}
	r, err = p.Run(t.Context(), py.Code{Source: "print('fits')"}, py.Limits{Time: time.Minute, Memory: py.MinMemory})
	if err != nil || string(r.Stdout) != "fits\n" {
		t.Errorf("with the least memory: %+v, %v", r, err)
	}
}

// TestI11_OutputIsCut checks that the beginning of the output is kept, the rest counted, and that any bytes are
// accepted.
func TestI11_OutputIsCut(t *testing.T) {
	p := newPool(t, py.Config{})
	r := run(t, p, "print('x' * 10_000_000)")
	if len(r.Stdout) != py.DefaultOutput || r.StdoutSize != 10_000_001 || !r.Truncated() ||
		strings.Trim(string(r.Stdout), "x") != "" {
		t.Errorf("%d of %d", len(r.Stdout), r.StdoutSize)
	}
	r = run(t, p, "for i in range(100_000): print('%099d' % i)\nraise ValueError('x' * 3_000_000)")
	if len(r.Stdout) != py.DefaultOutput || r.StdoutSize != 10_000_000 || r.StderrSize < 3_000_000 ||
		len(r.Stderr) != py.DefaultOutput || r.Exception == nil || len(r.Exception.Message) > 2000 {
		t.Errorf("%d of %d, %d of %d", len(r.Stdout), r.StdoutSize, len(r.Stderr), r.StderrSize)
	}
	const raw = "import typing\nout = typing.get_type_hints.__globals__['sys'].stdout\n"
	if r := run(t, p, raw+"out.buffer.write(b'a\\xff\\xfe\\x00b')"); string(r.Stdout) != "a\xff\xfe\x00b" {
		t.Errorf("%q", r.Stdout)
	}
	fails(t, p, "print('\\ud800')", "UnicodeEncodeError")
	for _, trick := range []string{
		raw + "out.close()\nprint('x')", raw + "out.detach()\nprint('x')", raw + "out.buffer.raw.close()",
		raw + "typing.get_type_hints.__globals__['sys'].stdout = None\nprint('x')",
		raw + "typing.get_type_hints.__globals__['sys'].stdout = 5\nprint('x')",
		raw + "del typing.get_type_hints.__globals__['sys'].stdout\nprint('x')",
		raw + "out.write = lambda s: 1/0\nprint('x')",
		raw + "typing.get_type_hints.__globals__['sys'].excepthook = None\n1/0",
		raw + "typing.get_type_hints.__globals__['sys'].stderr.close()\n1/0",
		raw + "typing.get_type_hints.__globals__['sys'].stdin.close()\ninput()", "input()", "while True: input()",
	} {
		run(t, p, trick)
		works(t, p)
	}
}

// TestI11_CodeOfAnySize runs a megabyte of code.
func TestI11_CodeOfAnySize(t *testing.T) {
	p := newPool(t, py.Config{})
	prints(t, p, "x = '"+strings.Repeat("é", 500_000)+"'\nprint(len(x))", "500000\n")
	prints(t, p, strings.Repeat("# nothing\n", 100_000)+"print(1)", "1\n")
	r := run(t, p, strings.Repeat("x = 1\n", 180_000)+"print(x)")
	if string(r.Stdout) != "1\n" && (r.Exception == nil || r.Exception.Type != "MemoryError") {
		t.Errorf("%+v %q", r.Exception, r.Stdout)
	}
	works(t, p)
}

// TestI11_CancelEndsTheRun checks that a run ends at once when its context ends.
func TestI11_CancelEndsTheRun(t *testing.T) {
	p := newPool(t, py.Config{Keep: -1, Warm: -1})
	works(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := p.Run(ctx, py.Code{Source: "while True: pass"}, py.Limits{Time: 5 * time.Minute})
		ended <- err
	}()
	until(t, "a worker to run", func() bool { return children(t) == 1 })
	cancel()
	if err := <-ended; reeve.CodeOf(err) != reeve.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := children(t); n != 0 {
		until(t, "the worker that was starting to end", func() bool { return children(t) == 0 })
	}
	if _, err := p.Run(ctx, py.Code{}, py.Limits{}); reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("a caller who is gone: %v", err)
	}
	works(t, p)
}

// TestI11_ManyAtOnce checks that concurrent runs do not mix up their results.
func TestI11_ManyAtOnce(t *testing.T) {
	p := newPool(t, py.Config{Max: 3})
	var work sync.WaitGroup
	for i := range 30 {
		work.Go(func() {
			owner := fmt.Sprint("owner", i%2)
			r, err := p.Run(context.Background(),
				py.Code{Owner: owner, Source: fmt.Sprintf("print(sum(range(%d)))", i)}, py.Limits{Time: time.Minute})
			if want := fmt.Sprintln(i * (i - 1) / 2); err != nil || string(r.Stdout) != want {
				t.Errorf("%d: %q, %v", i, r.Stdout, err)
			}
		})
	}
	work.Wait()
}

// until polls until a condition holds.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for begin := reeve.Monotonic(); !done(); time.Sleep(5 * time.Millisecond) {
		if reeve.Since(begin) > time.Minute {
			t.Fatal("waited in vain for " + what)
		}
	}
}
