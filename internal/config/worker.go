package config

// Worker is an agent that tasks give work to: with instructions, tools, a model and limits
// of its own. What does not fit the tools there are, is told where workers are used, and
// switches that one off; it is no problem of the file.
type Worker struct {
	// Description is what it is good for: the agent that gives work reads it.
	Description string `json:"description"`
	// Instructions are its system prompt.
	Instructions string `json:"instructions"`
	// Tools are the tools it has: names, or patterns as in read_*. It has no others.
	Tools []string `json:"tools,omitempty"`
	// Model as provider:id; empty: that of the task.
	Model string `json:"model,omitempty"`
	// Limits of one piece of work; what is left out is as for all workers (Limits).
	Limits WorkerLimits `json:"limits,omitzero"`
}

// WorkerLimits are those of one worker. 0: as for all workers.
type WorkerLimits struct {
	ModelCalls int     `json:"model_calls,omitempty"`
	ToolCalls  int     `json:"tool_calls,omitempty"`
	Tokens     int     `json:"tokens,omitempty"`
	USD        float64 `json:"usd,omitempty"`
}
