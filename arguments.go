package holdfast

import "context"

// What a caller must not pass is refused before anything is done or sent. All of it is nil where something is needed.

// missing is the error of a call one of whose arguments is nil.
func missing(call, what string) error { return &OptionError{call, nil, call + ": " + what + " is nil"} }

// checkCall refuses a call of a lock's method: h is nil, or of no manager, or ctx is nil.
func checkCall(ctx context.Context, call string, h *handle) error {
	if ctx != nil && h.made() {
		return nil
	}
	return badCall(ctx, call, h)
}

// made reports whether a Manager has made the lock: it is not nil, nor a zero value, nor of a nil Manager.
func (h *handle) made() bool { return h != nil && h.m != nil }

// zero reports whether h is a zero value.
func (h *handle) zero() bool { return h.m == nil && h.err == nil }

func badCall(ctx context.Context, call string, h *handle) error {
	switch {
	case h == nil:
		return missing(call, "lock")
	case h.zero():
		return &OptionError{call, nil, call + ": no Manager has made this lock"}
	case h.m == nil:
		return h.err
	}
	return missing(call, "context")
}

// check refuses a call of a lease's method.
func (l *Lease) check(call string) error {
	switch {
	case l == nil:
		return missing(call, "lease")
	case !l.inner().Made(): // a zero value
		return &OptionError{call, nil, call + ": no lock has granted this lease"}
	}
	return nil
}

// check refuses a call of a manager's method.
func (m *Manager) check(ctx context.Context, call string) error {
	switch {
	case m == nil:
		return missing(call, "manager")
	case ctx == nil:
		return missing(call, "context")
	}
	return nil
}
