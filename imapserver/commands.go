package imapserver

// command is one row of the state table.
type command struct {
	states  state // in which it is allowed
	expunge bool  // EXPUNGE may be told at its end (RFC 3501 section 7.4.1)
	changes bool  // it changes the store: not for a login that may only read
	message bool  // a message may follow as a literal: APPEND
	run     func(*conn, *parser) (reply, error)
}

const (
	anyState = notAuthenticated | authenticated | selectedState
	loggedIn = authenticated | selectedState
)

// commands is all we know and where each is allowed.
var commands = map[string]*command{
	"CAPABILITY": {states: anyState, expunge: true, run: (*conn).capability},
	"NOOP":       {states: anyState, expunge: true, run: (*conn).noop},
	"LOGOUT":     {states: anyState, run: (*conn).logout},
	"ID":         {states: anyState, expunge: true, run: (*conn).identify},

	"STARTTLS":     {states: notAuthenticated, run: (*conn).startTLS},
	"LOGIN":        {states: notAuthenticated, run: (*conn).login},
	"AUTHENTICATE": {states: notAuthenticated, run: (*conn).authenticate},

	"ENABLE":       {states: loggedIn, expunge: true, run: (*conn).enable},
	"NAMESPACE":    {states: loggedIn, expunge: true, run: (*conn).namespace},
	"SELECT":       {states: loggedIn, run: (*conn).selectRW},
	"EXAMINE":      {states: loggedIn, run: (*conn).examine},
	"CREATE":       {states: loggedIn, expunge: true, changes: true, run: (*conn).create},
	"DELETE":       {states: loggedIn, expunge: true, changes: true, run: (*conn).delete},
	"RENAME":       {states: loggedIn, expunge: true, changes: true, run: (*conn).rename},
	"SUBSCRIBE":    {states: loggedIn, expunge: true, changes: true, run: (*conn).subscribe},
	"UNSUBSCRIBE":  {states: loggedIn, expunge: true, changes: true, run: (*conn).unsubscribe},
	"LIST":         {states: loggedIn, expunge: true, run: (*conn).list},
	"LSUB":         {states: loggedIn, expunge: true, run: (*conn).lsub},
	"XLIST":        {states: loggedIn, expunge: true, run: (*conn).xlist},
	"STATUS":       {states: loggedIn, expunge: true, run: (*conn).status},
	"GETQUOTA":     {states: loggedIn, expunge: true, run: (*conn).getQuota},
	"GETQUOTAROOT": {states: loggedIn, expunge: true, run: (*conn).getQuotaRoot},
	// EXPUNGE waits for the next command: Thunderbird (153) hangs when it comes with the
	// EXISTS of its own APPEND.
	"APPEND": {states: loggedIn, changes: true, message: true},
	"NOTIFY": {states: loggedIn, expunge: true, run: (*conn).notify},
	"IDLE":   {states: loggedIn, expunge: true, run: (*conn).idle},

	"CHECK":       {states: selectedState, expunge: true, run: (*conn).check},
	"CLOSE":       {states: selectedState, run: (*conn).closeMailbox},
	"UNSELECT":    {states: selectedState, run: (*conn).unselect},
	"EXPUNGE":     {states: selectedState, expunge: true, changes: true, run: (*conn).expunge},
	"SEARCH":      {states: selectedState, run: bySeq((*conn).search)},
	"FETCH":       {states: selectedState, run: bySeq((*conn).fetch)},
	"STORE":       {states: selectedState, changes: true, run: bySeq((*conn).storeFlags)},
	"COPY":        {states: selectedState, expunge: true, changes: true, run: bySeq((*conn).copy)},
	"MOVE":        {states: selectedState, expunge: true, changes: true, run: bySeq((*conn).move)},
	"SORT":        {states: selectedState, run: bySeq((*conn).sort)},
	"THREAD":      {states: selectedState, run: bySeq((*conn).thread)},
	"UID SORT":    {states: selectedState, expunge: true, run: byUID((*conn).sort)},
	"UID THREAD":  {states: selectedState, expunge: true, run: byUID((*conn).thread)},
	"UID SEARCH":  {states: selectedState, expunge: true, run: byUID((*conn).search)},
	"UID FETCH":   {states: selectedState, expunge: true, run: byUID((*conn).fetch)},
	"UID STORE":   {states: selectedState, expunge: true, changes: true, run: byUID((*conn).storeFlags)},
	"UID COPY":    {states: selectedState, expunge: true, changes: true, run: byUID((*conn).copy)},
	"UID MOVE":    {states: selectedState, expunge: true, changes: true, run: byUID((*conn).move)},
	"UID EXPUNGE": {states: selectedState, expunge: true, changes: true, run: (*conn).uidExpunge},
}

// numbering says what the numbers of a command mean.
type numbering bool

const (
	seqNumbers numbering = false
	uidNumbers numbering = true
)

func bySeq(f func(*conn, *parser, numbering) (reply, error)) func(*conn, *parser) (reply, error) {
	return func(c *conn, p *parser) (reply, error) { return f(c, p, seqNumbers) }
}

func byUID(f func(*conn, *parser, numbering) (reply, error)) func(*conn, *parser) (reply, error) {
	return func(c *conn, p *parser) (reply, error) { return f(c, p, uidNumbers) }
}
