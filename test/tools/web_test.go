package tools_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// fetched is the result of web_fetch.
type fetched struct {
	URL         string
	Status      int
	ContentType string `json:"content_type"`
	Title       string
	Untrusted   bool
	Page, Pages int
	Size        int64
	SHA256      string
	Note        string
	Text        string
}

// webServer serves pages and counts requests by path.
type webServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
}

func newWebServer(t *testing.T, pages map[string]http.HandlerFunc) *webServer {
	s := &webServer{seen: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen[r.URL.Path]++
		s.mu.Unlock()
		if page, ok := pages[r.URL.Path]; ok {
			page(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *webServer) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[path]
}

func send(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// webConfig allows this machine under its address 127.0.0.1.
func webConfig(t *testing.T) host.Config {
	cfg := kit.FastConfig(t)
	cfg.HTTPAllow, cfg.Web.HostRate = []string{"127.0.0.1"}, 1000
	return cfg
}

// callCode calls a tool and returns the code of its error, or an empty code.
func callCode(t *testing.T, h *reevetest.Host, agent, tool string, args any) (reeve.Code, string) {
	t.Helper()
	res, problem, _ := kit.TryCall(h, agent, kit.Call{"tool": tool, "args": args})
	if problem.Code != "" {
		return problem.Code, problem.Detail
	}
	return res.Code, res.Content
}

func TestM15_FetchReadsPages(t *testing.T) {
	t.Parallel()
	article := "<html><head><title> A\n title </title><script>alert(1)</script></head><body><h1>Head</h1>" +
		"<p>See <a href='sub/page?x=1'>this</a> and <a href='javascript:x()'>that</a>.</p>" +
		"<table><tr><th>a</th></tr><tr><td>1</td></tr></table><p>Broken <b>bold"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("<p>zipped"))
	_ = z.Close()
	s := newWebServer(t, map[string]http.HandlerFunc{
		"/dir/article": send("text/html; charset=utf-8", article),
		"/latin":       send("text/html; charset=utf-8", "<p>caf\xe9"),
		"/declared":    send("text/html; charset=iso-8859-1", "<p>café"),
		"/koi":         send("text/html; charset=koi8-r", "<p>\xf0\xd2\xc9\xd7\xc5\xd4"),
		"/json":        send("application/json", `{"a": [1, "<b>"]}`),
		"/png":         send("image/png", "\x89PNG\r\n\x1a\n123"),
		"/pdf":         send("application/octet-stream", "%PDF-1.7 binary"),
		"/deep":        send("text/html", strings.Repeat("<div><b>", 5000)+"bottom"),
		"/gzip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
		},
		"/empty": send("text/html", ""),
		"/wide":  send("text/html", "\xff\xfe<\x00p\x00>\x00\xe9\x00"),
		"/meta":  send("text/html", "<meta charset=shift_jis><p>\x93\xfa\x96\x7b"),
		"/away":  redirect("/dir/article"),
	})
	h := reevetest.StartWith(t, webConfig(t))
	a := h.Agent("reader", "web_fetch")
	fetch := func(path string, more ...any) fetched {
		t.Helper()
		args := kit.Object{"url": s.URL + path}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return kit.DecodeResult[fetched](t, kit.MustBeWhole(t, h.Call(a.ID, "web_fetch", args)))
	}
	f := fetch("/away")
	for _, part := range []string{"# Head", "[this](" + s.URL + "/dir/sub/page?x=1)", "that", "| a |", "**bold**"} {
		if !strings.Contains(f.Text, part) {
			t.Errorf("no %q in %q", part, f.Text)
		}
	}
	if f.Title != "A title" || f.URL != s.URL+"/dir/article" || f.Status != 200 || !f.Untrusted || f.Pages != 1 ||
		strings.Contains(f.Text, "alert") || strings.Contains(f.Text, "javascript") {
		t.Errorf("%+v", f)
	}
	for path, want := range map[string]string{"/latin": "café", "/declared": "café", "/koi": "Привет",
		"/json": `{"a": [1, "<b>"]}`, "/deep": "bottom", "/gzip": "zipped", "/empty": "", "/wide": "é",
		"/meta": "日本"} {
		if f := fetch(path); f.Text != want {
			t.Errorf("%s: %q, want %q", path, f.Text, want)
		}
	}
	if f := fetch("/dir/article", "format", "source"); f.Text != article {
		t.Errorf("source: %q", f.Text)
	}
	f = fetch("/png")
	kit.Equal(t, f.ContentType+f.Text, "image/png", "a picture")
	kit.Equal(t, f.SHA256, reeve.Hash([]byte("\x89PNG\r\n\x1a\n123")), "its hash")
	kit.Equal(t, f.Size, 11, "its size")
	f = fetch("/pdf")
	kit.Equal(t, f.ContentType, "application/pdf", "the type of an unknown file")
	if f.Text != "" || f.SHA256 == "" || !strings.Contains(f.Note, "damaged") {
		t.Errorf("a damaged PDF file: %+v", f)
	}
	if code, _ := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": s.URL + "/absent"}); code != reeve.ToolFailed {
		t.Error("an absent page:", code)
	}
}

// textPDF returns a PDF file with one page of text.
func textPDF(title, operators string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, o := range []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(operators), operators),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>", "<</Title(" + title + ")>>"} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, at)
	return b.String()
}

// A PDF file becomes its text. A file without text is described, and its bytes are never shown.
func TestM15_FetchReadsPDFFiles(t *testing.T) {
	t.Parallel()
	file := textPDF("The year", "BT /F1 12 Tf 72 720 Td (Annual) Tj 60 0 Td (report) Tj -60 -15 Td (It rained.) Tj "+
		"0 -40 Td (\\(40 days\\)) Tj ET")
	s := newWebServer(t, map[string]http.HandlerFunc{"/report": send("application/pdf", file),
		"/scan":  send("application/pdf", textPDF("", "")),
		"/loose": send("application/octet-stream", file), "/cut": send("application/pdf", file[:300])})
	h := reevetest.StartWith(t, webConfig(t))
	a := h.Agent("reader", "web_fetch")
	fetch := func(path, format string) fetched {
		return kit.DecodeResult[fetched](t, h.Call(a.ID, "web_fetch", kit.Object{"url": s.URL + path, "format": format}))
	}
	for _, path := range []string{"/report", "/loose"} {
		f := fetch(path, "markdown")
		kit.Equal(t, kit.JoinValues(f.Title, f.Text, f.Note, f.Pages), "The year Annual report\nIt rained.\n\n(40 days)  1",
			path)
		if !f.Untrusted || f.SHA256 != reeve.Hash([]byte(file)) {
			t.Errorf("%+v", f)
		}
	}
	for path, want := range map[string]string{"/scan": "no text", "/cut": "damaged"} {
		if f := fetch(path, "markdown"); f.Text != "" || f.Size == 0 || !strings.Contains(f.Note, want) {
			t.Errorf("%s: %+v", path, f)
		}
	}
	if f := fetch("/report", "source"); f.Text != "" || f.SHA256 == "" {
		t.Errorf("the source: %+v", f)
	}
}

// A small page that asks for gigabytes of memory becomes its bare text. The server does not pay for it.
func TestO07_HostilePagesAreConvertedApart(t *testing.T) {
	t.Parallel()
	s := newWebServer(t, map[string]http.HandlerFunc{
		"/table": send("text/html", "<script>x()</script><table>"+strings.Repeat("<tr><td colspan=1000 rowspan=65534>cell", 100)),
		"/fine":  send("text/html", "<b>fine</b>")})
	h := reevetest.StartWith(t, webConfig(t))
	a := h.Agent("reader", "web_fetch")
	f := kit.DecodeResult[fetched](t, h.Call(a.ID, "web_fetch", kit.Object{"url": s.URL + "/table"}))
	if strings.Count(f.Text, "cell") != 100 || strings.Contains(f.Text, "x()") || !strings.Contains(f.Note, "too complex") {
		t.Errorf("%+v", f)
	}
	kit.Equal(t, kit.DecodeResult[fetched](t, h.Call(a.ID, "web_fetch", kit.Object{"url": s.URL + "/fine"})).Text,
		"**fine**", "the next page")
}

// Content that is damaged, or compressed in a way that was not asked for, is an error and not unreadable text.
func TestO07_BadCompression(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{}
	for _, encoding := range []string{"deflate", "br", "gzip, gzip", "gzip"} {
		pages["/"+encoding] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write([]byte("this is not compressed"))
		}
	}
	s := newWebServer(t, pages)
	cfg := webConfig(t)
	h := reevetest.StartWith(t, cfg)
	a := h.Agent("reader", "web_fetch", "web_download")
	for path := range pages {
		address := s.URL + strings.ReplaceAll(path, " ", "%20")
		code, text := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": address})
		if code != reeve.ToolFailed || !strings.Contains(text, "compressed") {
			t.Errorf("%s: %s %s", path, code, text)
		}
		code, text = callCode(t, h, a.ID, "web_download", kit.Object{"url": address, "path": "/tmp/x"})
		if code != reeve.ToolFailed || !strings.Contains(text, "compressed") {
			t.Errorf("download %s: %s %s", path, code, text)
		}
	}
	if files := findFiles(t, cfg.Dir); len(files) > 0 {
		t.Error("left behind:", files)
	}
}

// The pages of a text join to it, whatever the cap of outputs.
func TestM15_PagesJoin(t *testing.T) {
	t.Parallel()
	whole := strings.TrimSpace(strings.Repeat("\"a\"\n日本 ", 6000) + strings.Repeat("x", 30_000))
	s := newWebServer(t, map[string]http.HandlerFunc{"/long": send("text/plain", whole)})
	for _, most := range []int{1024, 16384} {
		cfg := webConfig(t)
		cfg.OutputCap = most
		h := reevetest.StartWith(t, cfg)
		a := h.Agent("reader", "web_fetch")
		joined := ""
		for n, pages := 1, 1; n <= pages; n++ {
			if most == 1024 && n > 5 {
				break
			}
			f := kit.DecodeResult[fetched](t, kit.MustBeWhole(t, h.Call(a.ID, "web_fetch",
				kit.Object{"url": s.URL + "/long", "page": n})))
			joined, pages = joined+f.Text, f.Pages
			kit.Equal(t, f.Page, n, "the page")
		}
		if joined == "" || !strings.HasPrefix(whole, joined) || most == 16384 && joined != whole {
			t.Errorf("cap %d: %d bytes of %d", most, len(joined), len(whole))
		}
		if code, _ := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": s.URL + "/long", "page": 9999}); code !=
			reeve.Validation {
			t.Error("a page that does not exist:", code)
		}
	}
}

// privateSpellings are spellings of private addresses: as numbers, mapped or embedded into IPv6, with other dots and
// digits, and with a dot at the end.
var privateSpellings = []string{"localhost", "[::1]", "[::ffff:127.0.0.2]", "2130706433", "0x7f.1", "0177.0.0.1", "127.1",
	"169.254.169.254", "0.0.0.0", "10.0.0.1", "127.0.0.1.", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	"127%E3%80%820%E3%80%820%E3%80%822", "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.2", "[fe80::1%25lo]", "[fd00:ec2::254]", "0"}

// No spelling of a private address, and no redirect to one, gets through.
func TestO07_PrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	secret := newWebServer(t, map[string]http.HandlerFunc{"/": send("text/plain", "secret")})
	port := secret.URL[strings.LastIndexByte(secret.URL, ':'):]
	pages := map[string]http.HandlerFunc{"/loop": redirect("/loop"), "/file": redirect("file:///etc/passwd")}
	for i, name := range privateSpellings {
		pages[fmt.Sprintf("/to/%d", i)] = redirect("http://" + name + port + "/")
	}
	s := newWebServer(t, pages)
	cfg := webConfig(t)
	h := reevetest.StartWith(t, cfg)
	a := h.Agent("reader", "web_fetch", "web_download")
	for i, name := range privateSpellings {
		for _, address := range []string{"http://" + name + port + "/", fmt.Sprintf("%s/to/%d", s.URL, i)} {
			if code, text := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": address}); code != reeve.Denied {
				t.Errorf("%s: %s %s", address, code, text)
			}
			if code, text := callCode(t, h, a.ID, "web_download", kit.Object{"url": address,
				"path": "/tmp/x"}); code != reeve.Denied {
				t.Errorf("download %s: %s %s", address, code, text)
			}
		}
	}
	for address, want := range map[string]reeve.Code{s.URL + "/loop": reeve.ToolFailed, s.URL + "/file": reeve.Denied,
		"ftp://127.0.0.1/": reeve.Validation, "http://u:p@127.0.0.1/": reeve.Validation,
		"not a url": reeve.Validation} {
		if code, text := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": address}); code != want {
			t.Errorf("%s: %s %s", address, code, text)
		}
	}
	kit.Equal(t, secret.count("/"), 0, "requests to the private server")
}

// A page over the limit is refused, whether it is announced, endless or compressed.
func TestO07_LimitsOfAPage(t *testing.T) {
	t.Parallel()
	chunk := bytes.Repeat([]byte("a"), 1<<20)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 50 {
		_, _ = z.Write(chunk)
	}
	_ = z.Close()
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	s := newWebServer(t, map[string]http.HandlerFunc{"/endless": endless,
		"/large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "104857600")
			for range 100 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"/bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		},
		"/broken": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("short"))
		}})
	cfg := webConfig(t)
	cfg.Web.MaxDownloadMB = 1
	h := reevetest.StartWith(t, cfg)
	a := h.Agent("reader", "web_fetch", "web_download", "file_list")
	for path, want := range map[string]reeve.Code{"/endless": reeve.TooLarge, "/large": reeve.TooLarge,
		"/bomb": reeve.TooLarge, "/broken": reeve.Unavailable} {
		if code, text := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": s.URL + path}); code != want {
			t.Errorf("%s: %s %s", path, code, text)
		}
		if code, text := callCode(t, h, a.ID, "web_download", kit.Object{"url": s.URL + path,
			"path": "/shared/new/file"}); code != want {
			t.Errorf("download %s: %s %s", path, code, text)
		}
	}
	if files := findFiles(t, cfg.Dir); len(files) > 0 {
		t.Error("left behind:", files)
	}
}

// findFiles lists the files in the workspace folders.
func findFiles(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "workspaces"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, ".receipts") {
			list = append(list, path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return list
}

func TestM15_RobotsAreRespected(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{
		"/robots.txt": send("text/plain", "User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /no # why\n"+
			"Allow: /no/but\nDisallow: /*.cgi$\nDisallow: /%7euser\nDisallow: /gär\n"),
		"/yes": send("text/plain", "yes"), "/no/x": send("text/plain", "no"), "/no/but": send("text/plain", "but"),
		"/a.cgi": send("text/plain", "cgi"), "/a.cgi.txt": send("text/plain", "txt"), "/to": redirect("/no/x")}
	s := newWebServer(t, pages)
	h := reevetest.StartWith(t, webConfig(t))
	a := h.Agent("reader", "web_fetch")
	for path, want := range map[string]reeve.Code{"/yes": "", "/no/x": reeve.Denied, "/no/but": "",
		"/a.cgi": reeve.Denied, "/a.cgi.txt": "", "/to": reeve.Denied, "/~user/x": reeve.Denied,
		"/%6eo/x": reeve.Denied, "/g%c3%a4rten": reeve.Denied} {
		if code, text := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": s.URL + path}); code != want {
			t.Errorf("%s: %s %s", path, code, text)
		}
	}
	kit.Equal(t, s.count("/no/x"), 0, "requests of a page that is not allowed")
	kit.Equal(t, s.count("/robots.txt"), 1, "requests of robots.txt")
	cfg := webConfig(t)
	cfg.Web.Robots = "ignore"
	rude := reevetest.StartWith(t, cfg)
	b := rude.Agent("reader", "web_fetch")
	rude.Call(b.ID, "web_fetch", kit.Object{"url": s.URL + "/no/x"})
	kit.Equal(t, s.count("/no/x"), 1, "requests that ignore robots.txt")
	down := newWebServer(t, map[string]http.HandlerFunc{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
	}, "/x": send("text/plain", "x")})
	if code, _ := callCode(t, h, a.ID, "web_fetch", kit.Object{"url": down.URL + "/x"}); code != reeve.Unavailable {
		t.Error("a server that cannot send robots.txt:", code)
	}
}

// One host is not asked more often than the setting says.
func TestM15_HostRate(t *testing.T) {
	t.Parallel()
	s := newWebServer(t, map[string]http.HandlerFunc{"/x": send("text/plain", "x")})
	cfg := webConfig(t)
	cfg.Web.HostRate, cfg.Web.Robots = 0.01, "ignore"
	h := reevetest.StartWith(t, cfg)
	a := h.Agent("reader", "web_fetch")
	for range 5 {
		h.Call(a.ID, "web_fetch", kit.Object{"url": s.URL + "/x"})
	}
	res, problem, _ := kit.TryCall(h, a.ID, kit.Call{"tool": "web_fetch", "args": kit.Object{"url": s.URL + "/x"}})
	if res.Code != reeve.RateLimited && problem.Code != reeve.RateLimited {
		t.Errorf("%+v %+v", res, problem)
	}
	kit.Equal(t, s.count("/x"), 5, "requests")
}

func TestM15_Download(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789", 200_000)
	s := newWebServer(t, map[string]http.HandlerFunc{"/file": send("application/zip", body),
		"/other": send("text/plain", "other")})
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.HTTPAllow, cfg.Web.HostRate = []string{"127.0.0.1"}, 1000
		h := reevetest.StartWith(t, cfg)
		a := h.Agent("clerk", "web_download", "file_delete", "file_restore")
		args := kit.Object{"url": s.URL + "/file", "path": "/shared/in/file.zip"}
		first := h.Call(a.ID, "web_download", args)
		got := kit.DecodeResult[struct {
			Path, SHA256 string
			Size         int
			Created      bool
		}](t, first)
		if got.SHA256 != reeve.Hash([]byte(body)) || got.Size != len(body) || !got.Created {
			t.Errorf("%+v", got)
		}
		file := filepath.Join(cfg.Dir, "workspaces", "default", "shared", "in", "file.zip")
		if b, err := os.ReadFile(file); err != nil || string(b) != body {
			t.Fatal("the file:", len(b), err)
		}
		if code, _ := callCode(t, h, a.ID, "web_download", args); code != reeve.AlreadyExists {
			t.Error("an existing file:", code)
		}
		for _, path := range []string{"/vault/x", "/shared/../../x", "/project/x", "/etc/x"} {
			if code, _ := callCode(t, h, a.ID, "web_download", kit.Object{"url": s.URL + "/file",
				"path": path}); code == "" {
				t.Error("written to", path)
			}
		}
		second := h.Call(a.ID, "web_download", kit.Object{"url": s.URL + "/other", "path": "/shared/in/file.zip",
			"overwrite": true})
		if b, _ := os.ReadFile(file); string(b) != "other" {
			t.Error("replaced:", len(b))
		}
		h.Want(200, nil, "POST", "/api/operations/"+second.OperationID+"/undo", nil)
		if b, _ := os.ReadFile(file); string(b) != body {
			t.Error("after undo:", len(b))
		}
		h.Want(200, nil, "POST", "/api/operations/"+first.OperationID+"/undo", nil)
		if files := findFiles(t, cfg.Dir); len(files) > 0 {
			t.Error("after both undos:", files)
		}
	})
}

// Each provider is asked in its own form, and its answers and errors are understood.
func TestM15_SearchProviders(t *testing.T) {
	t.Parallel()
	const key = "search-key-0123456789"
	var status int
	var mu sync.Mutex
	setStatus := func(s int) { mu.Lock(); defer mu.Unlock(); status = s }
	answer := func(w http.ResponseWriter, isGood bool, body string) {
		mu.Lock()
		defer mu.Unlock()
		if status != 200 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("wrong key " + key))
			return
		}
		if !isGood {
			t.Error("asked in the wrong form")
		}
		_, _ = w.Write([]byte(body))
	}
	s := newWebServer(t, map[string]http.HandlerFunc{
		"/res/v1/web/search": func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			answer(w, r.Header.Get("X-Subscription-Token") == key && q.Get("q") == "go & sql" && q.Get("count") == "2" &&
				q.Get("offset") == "1", `{"query":{"more_results_available":true},"web":{"results":[{"title":"<strong>Go</strong> &amp; SQL","url":"https://a.test/","description":"d","age":"1 day"},{"title":"x","url":"javascript:x"}]}}`)
		},
		"/search": func(w http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			if r.Method == "POST" {
				answer(w, r.Header.Get("Authorization") == "Bearer "+key && b.String() ==
					`{"max_results":4,"query":"go \u0026 sql"}`, `{"results":[{"title":"1","url":"https://1.test/"},{"title":"2","url":"https://2.test/"},{"title":"Go & SQL","url":"https://a.test/","content":"d"}]}`)
				return
			}
			q := r.URL.Query()
			answer(w, q.Get("q") == "go & sql" && q.Get("format") == "json" && q.Get("pageno") == "2",
				`{"results":[{"title":"Go & SQL","url":"https://a.test/","content":"d","publishedDate":null}]}`)
		}})
	for _, provider := range []string{"brave", "tavily", "searxng"} {
		cfg := webConfig(t)
		cfg.Web.Search = host.WebSearchConfig{Provider: provider, Key: key, URL: s.URL + "/"}
		log := &kit.LogBuffer{}
		cfg.LogTo = log
		h := reevetest.StartWith(t, cfg)
		a := h.Agent("seeker", "web_search")
		args := kit.Object{"query": "go & sql", "count": 2, "page": 2}
		setStatus(200)
		got := kit.DecodeResult[struct {
			Untrusted bool
			Results   []struct{ Title, URL, Text string }
		}](t, h.Call(a.ID, "web_search", args))
		if len(got.Results) != 1 || got.Results[0].Title != "Go & SQL" || got.Results[0].Text != "d" || !got.Untrusted {
			t.Errorf("%s: %+v", provider, got)
		}
		for s, want := range map[int]reeve.Code{401: reeve.Unauthenticated, 403: reeve.Forbidden,
			429: reeve.RateLimited, 500: reeve.Unavailable, 400: reeve.ToolFailed} {
			setStatus(s)
			code, text := callCode(t, h, a.ID, "web_search", args)
			if code != want || strings.Contains(text, key) {
				t.Errorf("%s %d: %s %s", provider, s, code, text)
			}
		}
		if list := string(h.Do("GET", "/api/tools", nil).Body); strings.Contains(list, key) ||
			strings.Contains(log.String(), key) {
			t.Error("the key is shown")
		}
	}
	h := reevetest.StartWith(t, webConfig(t))
	a := h.Agent("seeker", "web_search")
	res, problem, _ := kit.TryCall(h, a.ID, kit.Call{"tool": "web_search", "args": kit.Object{"query": "x"}})
	if said := fmt.Sprint(res, problem); !strings.Contains(said, "web.search.provider") || !strings.Contains(said,
		"UNSUPPORTED") {
		t.Error("without a provider:", said)
	}
}
