package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// bareSearch is what somebody would ask SQLite who has nothing but the index: the best ten, with their snippets.
const bareSearch = `SELECT e.message_id, e.subject, e.sender, e.sent_at, snippet(emails_words, 0, '<mark>', '</mark>', '…', 32), snippet(emails_words, 1, '<mark>', '</mark>', '…', 48)
	FROM emails_words JOIN emails e ON e.id = emails_words.rowid WHERE emails_words MATCH ? ORDER BY rank LIMIT 10`

// searches asks for the same in turn: the tool as an agent calls it, over HTTP and through the gate; the server's own index, opened in this process; and that of the bare
// database, whose rows are numbered from 1 and which nobody writes to.
func (p *postOffice) searches(ctx context.Context, c config, t *table) error {
	reader, err := p.reader(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	if p.same, err = openBare(filepath.Join(p.dir, "reeve.db"), "cache_size(-8000)"); err != nil {
		return err
	}
	defer p.same.Close()
	r := rand.New(rand.NewPCG(3, 3))
	var list [][]string
	for i := range pick(c, 400, 80) {
		list = append(list, []string{p.rare(r), p.rare(r)}[i%4/3:]) // every fourth is a single word
	}
	usual, err := p.compare(ctx, reader, list)
	if err != nil {
		return err
	}
	nothing, err := p.compare(ctx, reader, slices.Repeat([][]string{{"nobodywrotethis"}}, pick(c, 100, 40)))
	if err != nil {
		return err
	}
	var common [][]string
	for i := range pick(c, 8, 4) {
		common = append(common, p.words[i:i+1+i%2])
	}
	worst, err := p.compare(ctx, reader, common)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("email_search in %d mails, ", p.made)
	add := func(what, unit string, of func([]float64) float64, ours, bare []float64, target float64) {
		a, b := of(ours), of(bare)
		t.add(row{Section: "mail", Name: name + what, Unit: unit, Ours: a, Against: "bare FTS5 query", Peer: b, Ratio: a / b, Target: target, AtMost: true})
	}
	other := func(what, unit string, ours, bare []float64) {
		a, b := median(ours), median(bare)
		t.add(row{Section: "mail", Name: name + what, Unit: unit, Ours: a, Against: "on the bare database", Peer: b, Ratio: a / b, AtMost: true})
	}
	// In quick mode the search itself takes no longer than recording that it was made. A call goes from one process to another and back; beside busy neighbours each has to wait
	// for its turn, which the query in this process need not: then the processor time is what to look at.
	add("half of them", "ms", median, usual.ours.ms, usual.same.ms, pick(c, 1.3, 0))
	add("processor time of half of them", "µs", median, usual.ours.cpu, usual.same.cpu, 0)
	other("half of them", "ms", usual.ours.ms, usual.bare.ms)
	other("processor time of half of them", "µs", usual.ours.cpu, usual.bare.cpu)
	add("what finds nothing: what a call costs", "ms", median, nothing.ours.ms, nothing.same.ms, 0)
	add("processor time of what finds nothing", "µs", median, nothing.ours.cpu, nothing.same.cpu, 0)
	add("the commonest words, the slowest", "ms", slices.Max[[]float64], worst.ours.ms, worst.same.ms, 1)
	return nil
}

// searched is how long searches took, each in milliseconds, and what they cost in processor time, in microseconds.
type searched struct{ ours, same, bare cost }

type cost struct{ ms, cpu []float64 }

func (c *cost) add(took, used time.Duration) {
	c.ms, c.cpu = append(c.ms, float64(took.Microseconds())/1000), append(c.cpu, float64(used.Nanoseconds())/1000)
}

// compare searches for words that must all be there.
func (p *postOffice) compare(ctx context.Context, reader *client.Client, list [][]string) (s searched, err error) {
	for i, words := range list {
		mine := func() error {
			used := p.used()
			start := time.Now()
			res, err := reader.Calls().Call(ctx, "reader", api.CallRequest{Tool: "email_search", Args: jsonArgs(strings.Join(words, " "))})
			s.ours.add(time.Since(start), p.used()-used)
			if err == nil && res.IsError {
				err = errors.New(res.Content)
			}
			return err
		}
		straight := func(db *sql.DB, c *cost) func() error {
			return func() error {
				used := p.used()
				start := time.Now()
				err := search(ctx, db, words)
				c.add(time.Since(start), p.used()-used)
				return err
			}
		}
		turns := []func() error{mine, straight(p.same, &s.same), straight(p.bare, &s.bare)}
		for k := range turns {
			if err := turns[(i+k)%len(turns)](); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// search asks a database itself.
func search(ctx context.Context, db *sql.DB, words []string) error {
	rows, err := db.QueryContext(ctx, bareSearch, `"`+strings.Join(words, `" AND "`)+`"`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, subject, sender, a, b string
		var at int64
		if err := rows.Scan(&id, &subject, &sender, &at, &a, &b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// used is the processor time of this process and the server, thread by thread, as the scheduler counts it.
func (p *postOffice) used() (sum time.Duration) {
	for _, pid := range []int{os.Getpid(), p.server.cmd.Process.Pid} {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, file := range threads {
			if b, err := os.ReadFile(file); err == nil { // it may have ended
				ns, _ := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
				sum += time.Duration(ns)
			}
		}
	}
	return sum
}

// reader makes an agent that searches.
func (p *postOffice) reader(ctx context.Context) (*client.Client, error) {
	token, err := os.ReadFile(filepath.Join(p.dir, "owner.token"))
	if err != nil {
		return nil, err
	}
	reader, err := client.New(client.Config{URL: p.server.url, Token: strings.TrimSpace(string(token))})
	if err != nil {
		return nil, err
	}
	name := "reader"
	_, err = reader.Agents().Create(ctx, api.AgentRequest{Name: &name})
	if reeve.CodeOf(err) == reeve.AlreadyExists { // by an earlier run on the same directory
		return reader, nil
	}
	if err == nil {
		_, err = reader.Agents().Attach(ctx, name, api.AttachRequest{ToolID: "email_search"})
	}
	return reader, err
}

// rare picks a word that somebody may look for: not one of the hundred that nearly every mail has.
func (p *postOffice) rare(r *rand.Rand) string {
	n := float64(len(p.words)) / 100
	return p.words[int(100*math.Pow(n, r.Float64()))-1]
}

func jsonArgs(query string) json.RawMessage {
	b, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		panic(err)
	}
	return b
}
