package boltstore

import (
	"testing"

	"pizza/mailbox"
	"pizza/mailbox/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, dir string) mailbox.Store {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
