package providers

import (
	"crypto/sha256"
	"encoding/hex"
)

// Identity names what a provider counts calls against: the endpoint with the key, without
// giving the key away. Another key is another identity. It is for Info.Gate.
func Identity(provider, endpoint, key string) string {
	sum := sha256.Sum256([]byte(provider + "\x00" + endpoint + "\x00" + key))
	return hex.EncodeToString(sum[:12])
}
