package mail

import "pizza/internal/mime"

// Address is one mailbox.
type Address = mime.Address

// Domain is ours.
const Domain = "localhost"
