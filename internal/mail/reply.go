package mail

// NewText splits the text of a reply into what is new and what is old.
func NewText(text, parent string) (newText, quoted string, inline bool) { return text, "", false }
func cutSignature(text string) string                                   { return text }
