// Package ask lets tools ask the model of their agent. The budgets of the calling agent pay for the answer. Within a
// run each question is asked once: if a tool is called again, for example after a crash, it gets the stored answer.
package ask

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/keylock"
	"reeve/internal/store"
	"reeve/model"
)

// Gate asks models within budgets.
type Gate interface {
	AskModel(ctx context.Context, who reeve.Call, cost reeve.ModelCost,
		ask func(ctx context.Context, maxOutput int64) (reeve.Amount, error),
		save func(context.Context, *store.Tx) error) error
}

// Models returns models of the server by name.
type Models interface {
	// Model returns the model with a name. It returns an error if the server does not know the name, or if the model is
	// a rehearsal model.
	Model(name string) (model.Model, error)
}

// Service asks models on behalf of tools. It is safe for concurrent use.
type Service struct {
	db     *store.DB
	gate   Gate
	models Models
	locks  keylock.Map // by run and question: equal questions are asked one after the other
}

// New returns a service.
func New(db *store.DB, gate Gate, models Models) *Service {
	return &Service{db: db, gate: gate, models: models}
}

// Answer is the answer to a question.
type Answer struct {
	Text  string `json:"text"`
	IsCut bool   `json:"is_cut,omitempty"` // the limit of tokens ended the answer
}

// Ask sends a request of a tool to the model of the tool's agent and returns the answer. The model in the request is
// ignored.
func (s *Service) Ask(ctx context.Context, r model.Request) (Answer, error) {
	inv := reeve.InvocationFrom(ctx)
	name, err := s.modelName(ctx, inv)
	if err != nil {
		return Answer{}, err
	}
	r.Model = name
	llm, err := s.models.Model(name)
	if err != nil {
		return Answer{}, err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return Answer{}, reeve.Errorf(reeve.Internal, "the request to the model cannot be encoded")
	}
	hash := reeve.Hash(raw)
	release, err := s.locks.Wait(ctx, inv.Run+"/"+hash)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	if stored, found, err := s.find(ctx, inv, hash); err != nil || found {
		return stored, err
	}
	return s.ask(ctx, inv, llm, r, hash)
}

// modelName returns the name of the model of the calling agent. An empty name means the default.
func (s *Service) modelName(ctx context.Context, inv *reeve.Invocation) (string, error) {
	var agent reeve.Agent
	err := s.db.View(ctx, func(snap *store.Snap) (err error) {
		agent, err = snap.Agents().GetAgent(ctx, inv.Workspace, inv.Agent)
		return err
	})
	if err != nil {
		return "", err
	}
	config, err := reeve.ParseAgentConfig(agent.Config)
	return config.Model, err
}

// find returns the stored answer to a question of the run, or false if there is none.
func (s *Service) find(ctx context.Context, inv *reeve.Invocation, hash string) (a Answer, found bool, err error) {
	if inv.Run == "" {
		return a, false, nil
	}
	var text string
	err = s.db.View(ctx, func(snap *store.Snap) (err error) {
		text, found, err = snap.Runs().FindModelAnswer(ctx, inv.Workspace, inv.Run, hash)
		return err
	})
	if err != nil || !found {
		return a, false, err
	}
	if json.Unmarshal([]byte(text), &a) != nil {
		return a, false, nil // without a valid answer the question is asked again
	}
	return a, true, nil
}

// ask sends the request and stores the answer in the transaction that charges it.
func (s *Service) ask(ctx context.Context, inv *reeve.Invocation, llm model.Model, r model.Request,
	hash string) (a Answer, err error) {
	var spent reeve.Amount
	who := reeve.Call{Workspace: inv.Workspace, Agent: inv.Agent, User: inv.User, Session: inv.Session, Run: inv.Run,
		Via: reeve.ViaRun}
	cost := model.EstimateCost(llm, r)
	err = s.gate.AskModel(ctx, who, cost, func(ctx context.Context, maxOutput int64) (reeve.Amount, error) {
		r.LimitOutput(maxOutput)
		start := reeve.Monotonic()
		got, err := llm.Answer(ctx, r, nil)
		spent = got.Usage.Cost(reeve.Since(start))
		if err != nil {
			return spent, err
		}
		if got.Stop == model.StopRefused {
			return spent, reeve.Errorf(reeve.ModelFailed, "the model refused to answer").
				Hintf("change the text or the instructions, or use another model")
		}
		a = Answer{Text: reeve.SanitizeText(got.Text()), IsCut: got.Stop == model.StopLength}
		if a.Text == "" {
			return spent, reeve.Errorf(reeve.ModelFailed, "the model's answer is empty")
		}
		return spent, nil
	}, func(ctx context.Context, tx *store.Tx) error {
		if inv.Run == "" {
			return nil
		}
		stored, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return tx.Runs().InsertModelAnswer(ctx, inv.Workspace, inv.Run, hash, string(stored))
	})
	if spent.Tokens > 0 || spent.Micros > 0 {
		inv.SpendCharged(spent)
	}
	return a, err
}
