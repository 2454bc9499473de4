package mailbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
)

// Sums reads the numbers of a record that Add made; no value has none.
func (r Record) Sums() (map[string]int64, error) {
	sums := map[string]int64{}
	if len(r.Value) == 0 {
		return sums, nil
	}
	if err := json.Unmarshal(r.Value, &sums); err != nil {
		return nil, fmt.Errorf("mailbox: numbers of %s: %w", r.Key, err)
	}
	return sums, nil
}

// To adds op to the value of its record as it is, and gives the new one. Errors are
// *Error: Invalid when the record holds something else or a number gets too large,
// Conflict when a bound does not hold.
func (op Add) To(value []byte) ([]byte, error) {
	wrong := func(kind Kind, text string) error { return &Error{Op: "add", Kind: kind, Name: op.Key, Text: text} }
	sums, err := Record{Key: op.Key, Value: value}.Sums()
	if err != nil || sums == nil {
		return nil, wrong(Invalid, "the record does not hold numbers")
	}
	sums = maps.Clone(sums)
	for name, n := range op.Sums {
		if had := sums[name]; n > 0 && had > math.MaxInt64-n || n < 0 && had < math.MinInt64-n {
			return nil, wrong(Invalid, "the number "+name+" gets too large")
		}
		sums[name] += n
	}
	for _, m := range op.Most {
		all := 0.0 // no overflow; bounds near 2^53 are nobody's
		for _, name := range m.Names {
			all += float64(sums[name])
		}
		if all > float64(m.Max) {
			return nil, wrong(Conflict, fmt.Sprintf("%v come to more than %d", m.Names, m.Max))
		}
	}
	b, err := json.Marshal(sums) // keys sorted: the same numbers are the same bytes
	if err != nil {
		return nil, fmt.Errorf("mailbox: numbers of %s: %w", op.Key, err)
	}
	return b, nil
}
