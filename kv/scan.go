package kv

// Scan returns keys that start with a prefix and the cursor for more, zero at
// the end. A scan that starts with cursor zero and goes on until it gets zero
// returns every key at least once that is there all the time. limit is how many
// keys are wanted; it may be a few more, or fewer with more to come, since one
// call looks at no more than some thousand keys.
func (s *Store) Scan(prefix []byte, cursor uint64, limit int) (keys [][]byte, next uint64) {
	next = s.scan(cursor, limit, func(key []byte, _ Type) bool {
		if len(key) < len(prefix) || string(key[:len(prefix)]) != string(prefix) {
			return false
		}
		keys = append(keys, append([]byte{}, key...))
		return true
	})
	return keys, next
}
