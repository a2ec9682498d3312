package host

import (
	"cmp"
	"net/http"
	"time"

	"reeve"
	"reeve/internal/embed"
	"reeve/internal/memory"
	"reeve/model"
)

// MemoryConfig configures how notes are searched.
type MemoryConfig struct {
	Encoder       string   `yaml:"encoder" json:"encoder,omitempty" enum:"local,openai,off" doc:"Embedding model for search by meaning: local is built in, openai asks an OpenAI-compatible server, off searches by words only. Default: local"`
	URL           string   `yaml:"url" json:"url,omitempty" doc:"Base URL of the server of the encoder openai; Ollama has http://127.0.0.1:11434/v1. Default: https://api.openai.com/v1"`
	Key           string   `yaml:"key" json:"key,omitempty" doc:"API key of the encoder openai. Default: none"`
	Model         string   `yaml:"model" json:"model,omitempty" doc:"Model of the encoder openai, such as text-embedding-3-small"`
	WordWeight    float64  `yaml:"word_weight" json:"word_weight,omitempty" minimum:"0" maximum:"100" doc:"Weight of shared words in the score of a note. Default: 0.4"`
	MeaningWeight float64  `yaml:"meaning_weight" json:"meaning_weight,omitempty" minimum:"0" maximum:"100" doc:"Weight of similar meaning in the score of a note. Default: 1"`
	Consolidate   string   `yaml:"consolidate" json:"consolidate,omitempty" enum:"off,daily,weekly" doc:"How often the notes of each user are compared, to propose merges. Default: off"`
	HalfLife      Duration `yaml:"half_life" json:"half_life,omitempty" doc:"Age at which a note has lost half of the rank that age can cost. Pinned notes lose none. Default: 4320h"`
}

// newConsolidator creates the service that proposes merges of notes.
func (h *Host) newConsolidator(llm model.Model, models *model.Providers) *memory.Consolidator {
	every := map[string]time.Duration{"daily": 24 * time.Hour, "weekly": 7 * 24 * time.Hour}
	return memory.NewConsolidator(memory.ConsolidatorConfig{DB: h.db, Gate: h.services.gate, Notes: h.services.notes,
		Log: h.log, Model: llm, Every: every[h.cfg.Memory.Consolidate], HasModel: func(name string) bool {
			return models == nil || cmp.Or(name, models.Default()) != "rehearsal" // which cannot judge notes
		}})
}

// newNotes creates the service that searches notes.
func (h *Host) newNotes(client *http.Client) (*memory.Notes, error) {
	c := h.cfg.Memory
	cfg := memory.NotesConfig{DB: h.db, Log: h.log, WordWeight: c.WordWeight, MeaningWeight: c.MeaningWeight,
		HalfLife: time.Duration(c.HalfLife)}
	switch c.Encoder {
	case "", "local":
		cfg.Encoder = embed.NewLocal()
	case "openai":
		e, err := embed.NewOpenAI(embed.OpenAIConfig{BaseURL: c.URL, Key: c.Key, Model: c.Model, Client: client})
		if err != nil {
			return nil, reeve.Errorf(reeve.Validation, "memory: %s", reeve.AsError(err).Message).
				Hintf("correct the settings memory.url and memory.model")
		}
		cfg.Encoder = e
	}
	return memory.NewNotes(cfg), nil
}
