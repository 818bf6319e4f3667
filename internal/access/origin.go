package access

import (
	"context"

	"github.com/musterhq/muster/internal/validate"
)

// Actor is who did something, as records keep it: by name for people, by key
// id and prefix for API keys, by application and user for OAuth connections.
type Actor struct {
	Kind   Kind   `json:"kind"`
	ID     string `json:"id"`
	UserID string `json:"userId"` // the person behind a connection
	Name   string `json:"name"`
	Prefix string `json:"prefix"` // of a key
}

// Actor is the principal as records keep it.
func (p Principal) Actor() Actor {
	return Actor{Kind: p.Kind, ID: p.ID, UserID: p.UserID, Name: p.Name, Prefix: p.Prefix}
}

// OperatorActor is the actor of the command line, whose user owns the database.
// The user is the host's, as the operating system names it; empty: unknown.
func OperatorActor(user string) Actor {
	if user == "" {
		return Actor{Kind: System, ID: "operator", Name: "command line"}
	}
	return Actor{Kind: System, ID: "operator", Name: "command line (" + user + ")"}
}

// ServiceActor is the actor of what Muster does by itself.
func ServiceActor() Actor { return Actor{Kind: System, ID: "service", Name: "Muster"} }

// Origin is where a request came from. It travels in the context, so that
// whatever a request changes is recorded with it, in the same transaction.
type Origin struct {
	Actor     Actor // zero: not signed in yet
	RequestID string
	Address   string // of the client
	Client    string // the name that the client sends; not trusted
	Note      Note
}

// Note is what a caller says about a call beside its arguments: the caller's own
// words, which the service keeps and does not judge.
type Note struct {
	Reason string `json:"reason"`
	Ticket string `json:"ticket"`
}

// The limits of a note, in characters.
const (
	MaxReason = 200
	MaxTicket = 100
)

// The limits of what an origin keeps, in characters.
const (
	maxOriginAddress = 64
	maxOriginClient  = 200
)

type originKey struct{}

// WithOrigin returns a context whose changes are recorded as o's.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	o.Address, o.Client = validate.Clean(o.Address, maxOriginAddress), validate.Clean(o.Client, maxOriginClient)
	return context.WithValue(ctx, originKey{}, o)
}

// WithActor returns a context whose changes are recorded as the actor's. An
// empty request id leaves the one that is known.
func WithActor(ctx context.Context, a Actor, requestID string) context.Context {
	o := OriginOf(ctx)
	o.Actor = a
	if requestID != "" {
		o.RequestID = requestID
	}
	return context.WithValue(ctx, originKey{}, o)
}

// WithNote returns a context whose changes are recorded with a note.
func WithNote(ctx context.Context, n Note) context.Context {
	o := OriginOf(ctx)
	o.Note = n
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns where the context's request came from; zero if unknown.
func OriginOf(ctx context.Context) Origin { o, _ := ctx.Value(originKey{}).(Origin); return o }
