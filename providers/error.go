package providers

import (
	"fmt"
	"time"
)

// Class of a failed call; it decides whether and how the agent tries again.
type Class string

const (
	Auth          Class = "auth"           // key missing, wrong, expired, or no credit
	RateLimit     Class = "rate_limit"     // retry after RetryAfter
	Overloaded    Class = "overloaded"     // retry
	ContextLength Class = "context_length" // the request is too long
	Timeout       Class = "timeout"        // retry
	Invalid       Class = "invalid"        // the request is wrong; retrying does not help
	Filtered      Class = "filtered"       // refused by a content policy
	Network       Class = "network"        // connection failed or the stream was cut; retry
	Failed        Class = "failed"         // the model itself reports failure (runbook: fail); do not retry
)

// NoKey is the Code of an Error of class Auth that was made without a call: there is no
// key, or it cannot be read.
const NoKey = "no_key"

// Error is a failed model call.
type Error struct {
	Class      Class
	Status     int           // HTTP status, 0 if none
	Code       string        // the provider's own code or type
	Message    string        // the provider's text, without secrets; for the person and the log
	RetryAfter time.Duration // 0: not said
	Partial    bool          // part of the reply had arrived
	Err        error
}

func (e *Error) Error() string {
	s := "model call: " + string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool {
	switch e.Class {
	case RateLimit, Overloaded, Timeout, Network:
		return true
	}
	return false
}
