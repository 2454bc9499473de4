package agent

// Cap is the most that an account may use in a month. Zero fields: no cap.
type Cap struct {
	USD    float64
	Tokens int64 // input and output
}

// limits is the cap as limits of a run.
func (c Cap) limits() Limits { return Limits{Tokens: c.Tokens, Cost: c.USD} }
