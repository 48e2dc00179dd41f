package kv

// The longest key and value, in bytes.
const (
	MaxKey   = 1<<16 - 1
	MaxValue = 1 << 29
)

// A Policy says what a Store does when something new does not fit.
type Policy string

// The policies. All but NoEviction look at a few keys at random and take the
// best of them, as Redis does.
const (
	NoEviction    Policy = "noeviction"     // refuses it: ErrFull
	AllKeysLRU    Policy = "allkeys-lru"    // drops keys that were not used for long
	AllKeysLFU    Policy = "allkeys-lfu"    // drops keys that are used seldom
	AllKeysRandom Policy = "allkeys-random" // drops any keys
	VolatileLRU   Policy = "volatile-lru"   // as AllKeysLRU, among keys with a TTL
)

// Policies are all of them.
var Policies = []Policy{NoEviction, AllKeysLRU, VolatileLRU, AllKeysRandom, AllKeysLFU}

// A Compression is how large values are kept.
type Compression string

// The compressions. What does not get smaller is kept as it is.
const (
	CompressNone   Compression = "none"
	CompressGzip   Compression = "gzip"
	CompressBrotli Compression = "brotli"
	CompressZstd   Compression = "zstd"
)

// Compressions are all of them.
var Compressions = []Compression{CompressNone, CompressGzip, CompressBrotli, CompressZstd}

// Options are what a Store is made of.
type Options struct {
	// MemoryLimit is how many bytes keys, values and what is needed to find
	// them may take together. Zero means 256 MiB.
	MemoryLimit int64
	// Memory is where they are kept. It must be a shared mapping of zeros, of
	// at least MappingSize(MemoryLimit) bytes, that nobody else writes; pages
	// that were never used need no memory. The Store never unmaps it. Nil means
	// that the Store maps memory of its own.
	Memory []byte
	// Policy is what happens when it is full. Empty means NoEviction.
	Policy Policy
	// Compression is how values of at least CompressMin bytes are kept. Empty
	// means CompressNone.
	Compression Compression
	// CompressLevel is from 1, fast, to 9, small. Zero means 6.
	CompressLevel int
	// CompressMin is in bytes. Zero means 1024.
	CompressMin int
	// MaxLocks limits the locks that are held and those who wait for one. Zero
	// means 100,000.
	MaxLocks int
	// MaxWaiters limits the calls of Wait that wait. Zero means 100,000.
	MaxWaiters int
}

// DefaultOptions returns what the zero values stand for.
func DefaultOptions() Options {
	return Options{
		MemoryLimit:   256 << 20,
		Policy:        NoEviction,
		Compression:   CompressNone,
		CompressLevel: 6,
		CompressMin:   1024,
		MaxLocks:      100_000,
		MaxWaiters:    100_000,
	}
}

func (o Options) orDefaults() Options {
	d := DefaultOptions()
	if o.MemoryLimit == 0 {
		o.MemoryLimit = d.MemoryLimit
	}
	if o.Policy == "" {
		o.Policy = d.Policy
	}
	if o.Compression == "" {
		o.Compression = d.Compression
	}
	if o.CompressLevel == 0 {
		o.CompressLevel = d.CompressLevel
	}
	if o.CompressMin == 0 {
		o.CompressMin = d.CompressMin
	}
	if o.MaxLocks == 0 {
		o.MaxLocks = d.MaxLocks
	}
	if o.MaxWaiters == 0 {
		o.MaxWaiters = d.MaxWaiters
	}
	return o
}
