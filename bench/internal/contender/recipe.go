package contender

import (
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
)

var errNotOur = errors.New("the lock is not ours any more")

// owned turns the reply of a script that says 1 if it found the owner's lock into an
// error.
func owned(n int64, err error) error {
	if err == nil && n != 1 {
		err = errNotOur
	}
	return err
}

// token returns a value that no other attempt has.
func token() string { return uuid.NewString() }

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
