package holdfast

// ConfirmGrants makes a manager trust no grant by the server without asking Redis.
func ConfirmGrants() Option { return option(func(c *config) { c.confirm = true }) }
