package uselite

import (
	"cmp"
	"slices"
)

// trie finds all pieces that are a prefix of a text. Each step consumes one byte. The children of a node are stored
// next to each other.
type trie struct {
	nodes []node
	roots [256]int32 // the node of each first byte; 0 means none
}

type node struct {
	first int32 // the first child
	piece int32 // the piece that ends here; -1 means none
	count uint16
	label byte
}

// newTrie returns a trie of pieces. Among equal pieces the last one counts.
func newTrie(pieces []Piece, skip int) *trie {
	order := make([]int32, 0, len(pieces))
	for i := skip; i < len(pieces); i++ {
		if pieces[i].Text != "" {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(pieces[a].Text, pieces[b].Text), cmp.Compare(a, b))
	})
	t := &trie{nodes: make([]node, 1, 4*len(order)+1)}
	t.nodes[0].piece = -1
	t.grow(0, order, pieces, 0)
	for i := range t.nodes[0].count {
		at := t.nodes[0].first + int32(i)
		t.roots[t.nodes[at].label] = at
	}
	return t
}

// grow adds the children of a node. order holds the sorted pieces below the node. The node's own text has depth bytes.
func (t *trie) grow(parent int32, order []int32, pieces []Piece, depth int) {
	for len(order) > 0 && len(pieces[order[0]].Text) == depth {
		t.nodes[parent].piece = order[0]
		order = order[1:]
	}
	first := int32(len(t.nodes))
	var groups [][]int32
	for len(order) > 0 {
		label := pieces[order[0]].Text[depth]
		n := 1
		for n < len(order) && pieces[order[n]].Text[depth] == label {
			n++
		}
		t.nodes = append(t.nodes, node{piece: -1, label: label})
		groups = append(groups, order[:n])
		order = order[n:]
	}
	t.nodes[parent].first, t.nodes[parent].count = first, uint16(len(groups))
	for i, group := range groups {
		t.grow(first+int32(i), group, pieces, depth+1)
	}
}

// prefixes calls found for each piece that is a prefix of text, shortest first.
func (t *trie) prefixes(text string, found func(piece int32, length int)) {
	if text == "" {
		return
	}
	at := t.roots[text[0]]
	for length := 1; at != 0; length++ {
		n := t.nodes[at]
		if n.piece >= 0 {
			found(n.piece, length)
		}
		if length == len(text) {
			return
		}
		at = t.child(n, text[length])
	}
}

// child returns the child of n with a label, or 0.
func (t *trie) child(n node, label byte) int32 {
	for i := n.first; i < n.first+int32(n.count); i++ {
		if t.nodes[i].label == label {
			return i
		}
	}
	return 0
}
