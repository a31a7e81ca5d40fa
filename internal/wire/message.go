package wire

// SaysReleased reports whether a payload on a lock's channel says that the lock, or a read
// hold of it, was given up: "0", or after a writer "1", for all readers. Redisson decodes
// payloads as decimal numbers and acts on these two only; any other payload
// is no release and must cost nothing.
func SaysReleased(payload string) bool { return payload == "0" || payload == "1" }
