package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/client"
)

// bareSearch is what somebody would ask SQLite who has nothing but the index: the best ten, with their snippets.
const bareSearch = `SELECT e.message_id, e.subject, e.sender, e.sent_at, snippet(emails_words, 0, '<mark>', '</mark>', '…', 32), snippet(emails_words, 1, '<mark>', '</mark>', '…', 48)
	FROM emails_words JOIN emails e ON e.id = emails_words.rowid WHERE emails_words MATCH ? ORDER BY rank LIMIT 10`

// searches asks both for the same, in turn: the tool as an agent calls it, over HTTP and through the gate, and the bare index, in this process.
func (p *postOffice) searches(ctx context.Context, c config, t *table) error {
	api, err := p.reader(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	r := rand.New(rand.NewPCG(3, 3))
	var list [][]string
	for i := range pick(c, 400, 80) {
		list = append(list, []string{p.rare(r), p.rare(r)}[i%4/3:]) // every fourth is a single word
	}
	usual, err := p.compare(ctx, api, list)
	if err != nil {
		return err
	}
	nothing, err := p.compare(ctx, api, slices.Repeat([][]string{{"nobodywrotethis"}}, pick(c, 100, 40)))
	if err != nil {
		return err
	}
	var common [][]string
	for i := range pick(c, 8, 4) {
		common = append(common, p.words[i:i+1+i%2])
	}
	worst, err := p.compare(ctx, api, common)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("email_search in %d mails, ", p.made)
	add := func(what string, ours, peer, target float64, s searched) {
		t.add(row{Section: "mail", Name: name + what, Unit: "ms", Ours: ours, OursCPU: s.ours.cpu, Against: "bare FTS5 query", Peer: peer, PeerCPU: s.bare.cpu, Ratio: ours / peer, Target: target, AtMost: true})
	}
	// In quick mode the search itself takes no longer than recording that it was made.
	fixed := median(nothing.ours.ms)
	add("half of them", median(usual.ours.ms), median(usual.bare.ms), pick(c, 1.3, 0), usual)
	add("half of them, less what a call costs", median(usual.ours.ms)-fixed, median(usual.bare.ms), 0, usual)
	add("what finds nothing: what a call costs", fixed, median(nothing.bare.ms), 0, nothing)
	add("the commonest words, the slowest", slices.Max(worst.ours.ms), slices.Max(worst.bare.ms), 1, worst)
	return nil
}

// searched is how long searches took, each in milliseconds, and what they cost, in microseconds of processor time.
type searched struct {
	ours, bare struct {
		ms  []float64
		cpu float64
	}
}

// compare searches for words that must all be there.
func (p *postOffice) compare(ctx context.Context, api *client.Client, list [][]string) (s searched, err error) {
	for i, words := range list {
		mine := func() error {
			used := cpuTime()
			start := time.Now()
			res, err := api.Call(ctx, "reader", reeve.CallRequest{Tool: "email_search", Args: jsonArgs(strings.Join(words, " "))})
			s.ours.ms = append(s.ours.ms, float64(time.Since(start).Microseconds())/1000)
			s.ours.cpu += float64((cpuTime() - used).Microseconds()) / float64(len(list))
			if err == nil && res.IsError {
				err = errors.New(res.Content)
			}
			return err
		}
		theirs := func() error {
			used := cpuTime()
			start := time.Now()
			rows, err := p.bare.QueryContext(ctx, bareSearch, `"`+strings.Join(words, `" AND "`)+`"`)
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
			s.bare.ms = append(s.bare.ms, float64(time.Since(start).Microseconds())/1000)
			s.bare.cpu += float64((cpuTime() - used).Microseconds()) / float64(len(list))
			return rows.Err()
		}
		both := []func() error{mine, theirs}
		if i%2 == 1 {
			both[0], both[1] = theirs, mine
		}
		for _, f := range both {
			if err := f(); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// reader makes an agent that searches.
func (p *postOffice) reader(ctx context.Context) (*client.Client, error) {
	token, err := os.ReadFile(filepath.Join(p.dir, "owner.token"))
	if err != nil {
		return nil, err
	}
	api, err := client.New(client.Config{URL: p.server.url, Token: strings.TrimSpace(string(token))})
	if err != nil {
		return nil, err
	}
	name := "reader"
	_, err = api.CreateAgent(ctx, reeve.AgentRequest{Name: &name})
	if err == nil {
		_, err = api.Attach(ctx, name, reeve.AttachRequest{ToolID: "email_search"})
	}
	return api, err
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
