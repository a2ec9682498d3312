package notefile

import (
	"encoding/json"
	"slices"
	"strings"
)

// lettaBlock is a memory block of a Letta agent.
type lettaBlock struct {
	Label       string `json:"label"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

// lettaFile is an agent file of Letta. Older files describe one agent, with its blocks in core_memory.
type lettaFile struct {
	Agents []struct {
		Name         string            `json:"name"`
		Messages     []json.RawMessage `json:"messages"`
		MemoryBlocks []lettaBlock      `json:"memory_blocks"`
	} `json:"agents"`
	Blocks     []lettaBlock      `json:"blocks"`
	CoreMemory []lettaBlock      `json:"core_memory"`
	Messages   []json.RawMessage `json:"messages"`
}

// agentBlocks are the labels of blocks that are about the agent and its skills, not about a person or a subject.
var agentBlocks = []string{"persona", "skills", "loaded_skills"}

// readLetta reads the memory blocks of an agent file. The label of a block becomes a tag.
func (r *reader) readLetta(name string, b []byte) {
	var text string
	if json.Unmarshal(b, &text) == nil { // some exports are a JSON string that contains the file
		b = []byte(text)
	}
	var f lettaFile
	if err := json.Unmarshal(b, &f); err != nil {
		r.problem(name, "is not a Letta agent file: %s", describeJSONError(err))
		return
	}
	blocks, messages := slices.Concat(f.Blocks, f.CoreMemory), len(f.Messages)
	for _, a := range f.Agents {
		blocks, messages = append(blocks, a.MemoryBlocks...), messages+len(a.Messages)
	}
	if len(blocks) == 0 {
		r.problem(name, "has no memory blocks")
	}
	for _, block := range blocks {
		switch {
		case strings.TrimSpace(block.Value) == "":
			r.problem(name, "the block %q is empty", block.Label)
		case slices.Contains(agentBlocks, block.Label):
			r.problem(name, "the block %q describes the agent and is not a note", block.Label)
		default:
			r.readBlocks(name, block.Value, []string{block.Label}, nil)
		}
	}
	if messages > 0 {
		r.problem(name, "%d messages were left out, because only memory blocks become notes", messages)
	}
}
