package interop

// Names that both sides must build the same keys and channels from.
func names(e *env) {
	for _, name := range []string{
		"a:b:c", "{tag}:x", "x{tag}y", "a:{b}:{c}", "Grüße:鎖", `back\slash"quote'`, "redisson_lock", "*?[x]",
	} {
		e := *e
		e.key += ":" + name
		for _, d := range e.directions() {
			e.lockAgainst(d.from, 1, -1)
			e.refused(d.to)
			waiter := e.waiter(d.to, 2)
			e.unlockAgainst(d.from, 1)
			waiter.want("ok")
			e.unlock(d.to, 2)
			e.free()
		}
	}
}

// A name mapper on both sides that does the same leads to the same lock.
func nameMapper(e *env) {
	mapped := *e
	flags := []string{"--prefix", "app1:"}
	fleet := *e.fleet
	fleet.java[0], fleet.golang[0] = e.startJava(e, flags...), e.startGo(e, flags...)
	mapped.fleet = &fleet
	plain := *e
	plain.key = "app1:" + e.key
	for _, d := range mapped.directions() {
		mapped.lockAgainst(d.from, 1, -1)
		mapped.refused(d.to)
		plain.refused(plain.java[1]) // that is where it is
		plain.refused(plain.golang[1])
		e.free() // and not here
		waiter := d.to.start(e, e.thread(2), "lock", e.kind.name, e.key, -1)
		plain.parked(d.to, 2)
		mapped.unlockAgainst(d.from, 1)
		waiter.want("ok")
		mapped.unlock(d.to, 2)
		plain.free()
	}
}
