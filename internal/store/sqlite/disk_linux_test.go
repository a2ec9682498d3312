package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/store/storetest"
)

// unreadableFile names the environment variable with the database file that the subprocess of the test reads.
const unreadableFile = "REEVE_TEST_UNREADABLE"

// SQLite uses one code for a damaged database and for a disk that cannot be read (EIO). Only the former may lead to the
// advice to restore a backup. The reads fail in a separate process, because the seccomp filter cannot be removed.
func TestReadErrorIsNotReportedAsDamage(t *testing.T) {
	if file := os.Getenv(unreadableFile); file != "" {
		readWithFailures(t, file)
		return
	}
	file := filepath.Join(t.TempDir(), "reeve.db")
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), e, storetest.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := putPayload(db, randomBytes(1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestReadErrorIsNotReportedAsDamage$", "-test.v")
	cmd.Env = append(os.Environ(), unreadableFile+"="+file)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "disk of the database failed") {
		t.Fatalf("%v: %s", err, out)
	}
	damaged, err := os.OpenFile(file, os.O_WRONLY, 0) // the same database with actual damage
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(4096); at < 400_000; at += 4096 {
		if _, err := damaged.WriteAt(randomBytes(100), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := damaged.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Check(t.Context(), file)
	wantCode(t, err, reeve.Unavailable, "damaged")
}

// readWithFailures opens a database, makes all later reads of the process fail, and checks the error of a query.
func readWithFailures(t *testing.T, file string) {
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if err := failReads(); err != nil {
		t.Fatal(err)
	}
	err = store.UserError(e.Update(t.Context(), func(c store.Conn) error {
		rows, err := c.Query(t.Context(), "SELECT hash FROM payloads")
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return rows.Close()
	}))
	userErr := reeve.AsError(err)
	fmt.Println(userErr.Message)
	if userErr.Code != reeve.Unavailable || strings.Contains(userErr.Message, "damaged") ||
		strings.Contains(userErr.Hint, "restore") ||
		!strings.Contains(userErr.Hint, "keep the database file") {
		t.Errorf("%v; %s", err, userErr.Hint)
	}
}

// failReads makes pread fail with EIO in every thread of this process from now on.
func failReads() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PREAD64, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
