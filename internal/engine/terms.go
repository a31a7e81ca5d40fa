package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Terms are what the options of a lock add up to.
type Terms = protocol.Terms

// NewTerms are those of a lock that is renewed, and has no other options.
func NewTerms(ttl time.Duration) (c Terms) {
	c.TTL = ttl
	return c
}
