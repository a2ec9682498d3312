package host

import "reeve/internal/agent"

// Types for programs that replace steps of a turn with Config.Assemble and Config.Extract.
type (
	Assembler       = agent.Assembler
	AssemblyInput   = agent.AssemblyInput
	TurnSnapshot    = agent.TurnSnapshot
	ActiveTurn      = agent.ActiveTurn
	PendingCall     = agent.PendingCall
	ToolDefinition  = agent.ToolDefinition
	Extractor       = agent.Extractor
	ExtractionInput = agent.ExtractionInput
	Exchange        = agent.Exchange
	ExchangeCall    = agent.ExchangeCall
)
