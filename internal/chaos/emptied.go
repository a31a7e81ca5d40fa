package chaos

import "strconv"

// Redis deletes a list or a zset with its last member, without a DEL in the file, and the TTL with
// it: what is made of that name later needs one of its own.

// popped follows a command that takes members out of a list.
func (r *replay) popped(key string) {
	if lock, ok := lockOfQueue(key); ok && len(r.lineOf(lock).ids) == 0 {
		r.drop(key)
	}
}

// scored follows a command on a zset.
func (r *replay) scored(key, command string, args []string) {
	members := r.scores[key]
	switch command {
	case "zadd":
		if members == nil || !r.exists[key] {
			members = make(map[string]float64)
			r.scores[key] = members
		}
		r.create(key)
		for i := 0; i+1 < len(args); i += 2 {
			score, err := strconv.ParseFloat(args[i], 64)
			if err != nil {
				r.finding("zset", key, "zadd %v", args) // an option: Holdfast's scripts use none
				return
			}
			members[args[i+1]] = score
		}
		return
	case "zrem":
		for _, id := range args {
			delete(members, id)
		}
	case "zremrangebyscore": // of tombstones, from -inf
		most, err := strconv.ParseFloat(args[1], 64)
		for id, score := range members {
			if err == nil && score <= most {
				delete(members, id)
			}
		}
	}
	if len(members) == 0 {
		r.drop(key)
	}
}
