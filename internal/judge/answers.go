package judge

import "time"

// Refused judges a TryLock that was refused: it is wrong if the lock was free all the while, and no caller waited.
func (j *Judge) Refused(l *Lock, who string, began time.Duration, calm bool) {
	if free, ok := l.since["idle"]; ok && free < began {
		j.Fail(l, "false refusal", "%v: %s, and it was free since %v", l, who, free)
	}
	if since, ok := l.since["lingers"]; ok && since < began && calm {
		j.Fail(l, "refused for an idle lock", "%v: %s, and no caller had it since %v", l, who, since)
	}
}

// Loss is what a caller was told of the end of its lease.
type Loss struct {
	Deadline bool // that it has reached its deadline; else that Redis has not got the lock for it any more
	Valid    bool // it was valid when Unlock was called
	Deleted  bool // data of the lock was lost, or deleted
	Trouble  bool // something was wrong that can have kept it from being renewed; or it is not renewed
}

// Lost judges that.
func (j *Judge) Lost(l *Lock, who string, x Loss, err error) {
	switch {
	case x.Valid && x.Deadline:
		j.Fail(l, "false loss", "%s was valid, and Unlock says %v", who, err)
	case !x.Deadline && !x.Deleted, x.Deadline && !x.Trouble:
		j.Fail(l, "lost without cause", "%s: %v", who, err)
	}
}

// Hidden judges an Unlock that has succeeded, of a lease that had ended early.
func (j *Judge) Hidden(l *Lock, who string, early error) {
	if early != nil {
		j.Fail(l, "hidden loss", "%s had ended, and Unlock says nothing: %v", who, early)
	}
}

// Told judges how late the holder was told of the end of its lease.
func (j *Judge) Told(l *Lock, who string, late, most time.Duration) {
	if late > most {
		j.Fail(l, "told late", "%s, %v after its deadline", who, late)
	}
}
