package wire

// Message is what a payload on a lock's channel means to a waiter.
type Message uint8

const (
	// Ignored is any payload that is not one of Redisson's: a hint from nobody.
	Ignored Message = iota
	// Released says that the lock, or a read hold of it, was given up: "0".
	Released
	// WriteReleased says that a write lock was given up, all readers may try: "1".
	WriteReleased
)

// ParseMessage reads a payload. Redisson decodes payloads as decimal numbers and
// acts on 0 and 1 only; whatever else arrives is noise and must cost nothing.
func ParseMessage(payload string) Message {
	if len(payload) != 1 {
		return Ignored
	}
	switch payload[0] {
	case '0':
		return Released
	case '1':
		return WriteReleased
	}
	return Ignored
}
