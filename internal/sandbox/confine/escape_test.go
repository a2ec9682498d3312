package confine_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reeve/internal/sandbox/confine"
)

// TestO05_NothingGetsOut runs a hostile program that tries every known escape by system calls.
func TestO05_NothingGetsOut(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		dir, err := os.MkdirTemp("", "sock")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "s")
		for _, name := range []string{path, "@reeve-confine-" + itoa(os.Getpid())} {
			u, err := net.Listen("unix", name)
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		got := b.probes(confine.Command{}, itoa(os.Getpid()), port, filepath.Join(b.top, "secret.txt"), path)
		good := []string{"own file", "temporary file"}
		for name, said := range got {
			if want := slices.Contains(good, name); (said == "YES") != want &&
				(want || strings.HasPrefix(said, "YES")) {
				t.Errorf("%s: %s", name, said)
			}
		}
		if got["leaked files"] != "0" || got["uid"] == "0" {
			t.Errorf("%s files leaked; it is user %s", got["leaked files"], got["uid"])
		}
		if len(got) < 55 {
			t.Errorf("only %d probes", len(got))
		}
	})
}

// TestO05_MachineIsNotVisible inspects the file system and processes with a shell.
func TestO05_MachineIsNotVisible(t *testing.T) {
	t.Setenv("REEVE_TEST_PASSWORD", "hunter2")
	each(t, func(t *testing.T, b *box) {
		for line, want := range map[string]string{
			"echo x > " + b.top + "/evil":                                 "",
			"cat " + b.top + "/secret.txt":                                "",
			"cat " + b.top + "/other/note.txt":                            "",
			"ls " + b.top:                                                 "",
			"echo x > /etc/evil":                                          "",
			"echo x > /usr/evil":                                          "",
			"echo x > /var/tmp/reeve-evil":                                "",
			"cat /root/.bashrc":                                           "",
			"ln -s " + b.top + " link; cat link/secret.txt":               "",
			"ln -s " + b.top + " link2; echo x > link2/evil":              "",
			"ln " + b.top + "/secret.txt hard":                            "",
			"echo x > mine; mv mine " + b.top + "/evil":                   "",
			"rm -r " + b.top + "/other":                                   "",
			"chmod 777 " + b.top + "/secret.txt":                          "",
			"touch -d 2001-01-01 " + b.top + "/secret.txt":                "",
			"touch mine && touch mine && echo yes":                        "yes\n",
			"cd ../other && cat note.txt":                                 "",
			"ls -l /proc/1/root/root":                                     "",
			"cat /proc/*/environ | tr '\\0' '\\n' | grep hunter":          "",
			"env | grep -i -e PASSWORD -e hunter":                         "",
			"su -c id":                                                    "",
			"echo | sed '1e cat " + b.top + "/secret.txt' | grep outside": "",
			"echo x > f; echo | sed 'w " + b.top + "/evil'":               "",
			"echo x > f; tar -P --transform 's,^f,/srv/evil,' -cf a.tar f && tar -P -xf a.tar": "",
			"mkdir -p up; echo x > up/f; tar -P --transform 's,^up,../../..,' -cf b.tar up && tar -P -xf b.tar && " +
				"test ! -e ../../../f": "",
			"ln -s / slash; cat slash" + b.top + "/secret.txt": "",
			"ln -s ../other/note.txt n; cat n":                 "",
			"mkdir -p d; mount --bind / d":                     "",
			"cp /proc/1/root" + b.top + "/secret.txt .":        "",
			"dd if=/dev/zero of=/dev/mem bs=1 count=1":         "",
			"mount -t tmpfs none /tmp":                         "",
			"unshare -r id":                                    "",
			"echo hi > mine && cat mine":                       "hi\n",
			"echo hi > $TMPDIR/x && cat $TMPDIR/x":             "hi\n",
			"cd && pwd | grep -c .":                            "1\n",
			"echo x 2>/dev/null >/dev/null; echo $?":           "0\n",
		} {
			if r := b.sh(line, confine.Limits{}); string(r.Stdout) != want || (want == "") == (r.ExitCode == 0) {
				t.Errorf("%s: exit %d, %q, %q", line, r.ExitCode, r.Stdout, r.Stderr)
			}
		}
		if b.mode == confine.Namespaces {
			if r := b.sh("ls /proc | grep -c '^[0-9]'", confine.Limits{}); strings.TrimSpace(string(r.Stdout)) > "4" {
				t.Errorf("it sees %s processes", r.Stdout)
			}
			if r := b.sh("ls /", confine.Limits{}); strings.Contains(string(r.Stdout), "root\n") ||
				strings.Contains(string(r.Stdout), "old") {
				t.Errorf("it sees %s", r.Stdout)
			}
		} else if r := b.sh("ls /proc /root /home", confine.Limits{}); len(r.Stdout) != 0 {
			t.Errorf("it sees %s", r.Stdout)
		}
	})
}

// TestO05_GrantedResourcesAreAvailable passes variables, input, a read-only folder, a path for the workspace, and the
// network.
func TestO05_GrantedResourcesAreAvailable(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		shelf, err := os.MkdirTemp("", "shelf")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(shelf)
		if err := os.Chmod(shelf, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(shelf, "book"), []byte("read me"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := b.run(confine.Command{Args: []string{"/bin/sh", "-c", "cat; echo $GIVEN; cat " + shelf +
			"/book; echo no > " + shelf + "/book || echo kept; pwd"},
			Stdin: []byte("typed\n"), Env: []string{"GIVEN=value"}, ReadOnly: []string{shelf}}, confine.Limits{})
		place := "/shared\n"
		if b.mode == confine.Landlock {
			place = b.root + "\n"
		}
		if string(r.Stdout) != "typed\nvalue\nread mekept\n"+place {
			t.Errorf("%q %q", r.Stdout, r.Stderr)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		got := b.probes(confine.Command{Network: true}, itoa(os.Getpid()), port, filepath.Join(b.top, "secret.txt"),
			"/nowhere")
		if got["tcp to the host"] != "YES" || strings.HasPrefix(got["socket vsock"], "YES") ||
			strings.HasPrefix(got["raw socket"], "YES") ||
			strings.HasPrefix(got["abstract socket of the host"], "YES") {
			t.Errorf("%v", got)
		}
	})
}
