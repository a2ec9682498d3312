package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// cpuTime is the processor time that this process, those it started and the PostgreSQL server have used. Lanes take turns, so what is
// used during a turn is that lane's; and unlike time by the clock it does not depend on who else uses the machine.
func cpuTime() time.Duration {
	const tick = 10 * time.Millisecond
	type process struct {
		parent int
		used   time.Duration
	}
	all := map[int]process{}
	processes, _ := os.ReadDir("/proc")
	for _, e := range processes {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // not a process
		}
		b, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		text := string(b)
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		parent, _ := strconv.Atoi(f[1])
		used := 0
		for _, n := range f[11:15] { // its own, and that of children that have ended
			ticks, _ := strconv.Atoi(n)
			used += ticks
		}
		all[pid] = process{parent, time.Duration(used) * tick}
	}
	var sum time.Duration
	for pid, p := range all {
		for up := pid; up > 1; up = all[up].parent {
			if up == os.Getpid() || up == postmaster {
				sum += p.used
				break
			}
		}
	}
	return sum
}

// postmaster is the process that all of the PostgreSQL server's are children of.
var postmaster int

// findPostmaster reads its id from the server's own directory. Where that cannot be read, the server's time is not counted.
func findPostmaster(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, postgresServer())
	if err != nil {
		return err
	}
	var dir string
	err = conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	postmaster, err = strconv.Atoi(strings.TrimSpace(first))
	return err
}
