package quic

import (
	"testing"

	"golang.org/x/net/bpf"
)

func TestIDsNameTheirSocketAndLittleElse(t *testing.T) {
	for _, sockets := range []int{1, 2, 3, 7, MaxSockets} {
		for socket := range sockets {
			g := connIDs{socket: socket, sockets: sockets}
			first := map[byte]bool{}
			for range 200 {
				id, err := g.GenerateConnectionID()
				if err != nil {
					t.Fatal(err)
				}
				b := id.Bytes()
				if len(b) != g.ConnectionIDLen() {
					t.Fatalf("an ID has %d bytes, want %d", len(b), g.ConnectionIDLen())
				}
				if got, ok := socketOf(append([]byte{0x40}, b...), sockets); !ok || got != socket {
					t.Fatalf("a packet for %x goes to socket %d of %d (%v), want %d", b, got, sockets, ok, socket)
				}
				first[b[0]] = true
			}
			if len(first) < 3 {
				t.Errorf("200 IDs of socket %d of %d begin with only %d different bytes", socket, sockets, len(first))
			}
		}
	}
}

// FuzzSocketOf runs what the kernel runs and compares.
func FuzzSocketOf(f *testing.F) {
	f.Add([]byte{0x40, 5, 1, 2, 3, 4, 5, 6, 7}, 4)             // short header
	f.Add([]byte{0xc0, 0, 0, 0, 1, 8, 9, 1, 2, 3, 4, 5, 6}, 4) // long header
	f.Add([]byte{0xc0, 0, 0, 0, 1, 0, 8, 9, 1, 2, 3, 4, 5}, 4) // without an ID
	f.Add([]byte{0xc0, 0, 0, 0, 1, 8}, 3)                      // cut short
	f.Add([]byte{0x40}, 3)
	f.Add([]byte{}, 2)
	f.Fuzz(func(t *testing.T, packet []byte, sockets int) {
		if sockets < 1 || sockets > MaxSockets {
			t.Skip()
		}
		var raw []bpf.Instruction
		for _, i := range steering(uint32(sockets)) {
			raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K}.Disassemble())
		}
		vm, err := bpf.NewVM(raw)
		if err != nil {
			t.Fatal(err)
		}
		kernel, err := vm.Run(packet)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := socketOf(packet, sockets)
		switch {
		case ok && got != kernel:
			t.Errorf("socketOf(%x, %d) = %d, in the kernel %d", packet, sockets, got, kernel)
		case !ok && kernel != 0 && uint32(kernel) != 0xffffffff:
			t.Errorf("socketOf(%x, %d) names no socket, in the kernel %d", packet, sockets, kernel)
		}
	})
}
