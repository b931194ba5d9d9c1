package symdex

import "testing"

// Hashes of the bytes 0, 1, ... 255, 0, 1, ... by the reference implementation.
func TestXXH3(t *testing.T) {
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(i)
	}
	for n, want := range xxh3Known {
		if got := xxh3(data[:n]); got != want.short {
			t.Errorf("XXH3-64 of %d bytes: %#x, not %#x", n, got, want.short)
		}
		if n <= 240 {
			continue
		}
		if high, low := xxh3Long128(data[:n]); high != want.high || low != want.low {
			t.Errorf("XXH3-128 of %d bytes: %#x %#x, not %#x %#x", n, high, low, want.high, want.low)
		}
	}
}

var xxh3Known = map[int]struct{ short, high, low uint64 }{
	0:    {0x2d06800538d394c2, 0x99aa06d3014798d8, 0x6001c324468d497f},
	1:    {0xc44bdff4074eecdb, 0xa6cd5e9392000f6a, 0xc44bdff4074eecdb},
	2:    {0xd6645fc3051a9457, 0x6a4a5274c1b0d3ad, 0xd6645fc3051a9457},
	3:    {0x5f4299fc161c9cbb, 0xe3b55f57945a17cf, 0x5f4299fc161c9cbb},
	4:    {0x60dab036a58211f2, 0xeb70bf5fc779e9e6, 0xa6111d53e80a3db5},
	5:    {0xb075753a84ca0fbe, 0x9434532106a7c141, 0xc920d2347a85929b},
	8:    {0x3a1c2d7c85af88f8, 0xe1e4432a62217fe4, 0xcfd50c61c8bb98c1},
	9:    {0xe9612598145bb9dc, 0x16c769d83e4aebce, 0x907931979dca3746},
	15:   {0x55ecedc2b87bb042, 0x301a9f754e8f569a, 0x17ea4be19bc787},
	16:   {0x8355e3a6f61770db, 0x72950631827607e2, 0x842812cc870dcae2},
	17:   {0x9ef341a99de37328, 0x685bc458b37d057f, 0xc06e233df7729217},
	32:   {0x3523581fe96e4c05, 0x25e7c9b3424ceed2, 0x457d9566b6fcd697},
	33:   {0xe68c56ba88991e58, 0x2175c3aabb00637, 0xe08d84951339de86},
	44:   {0x88837c359af56b89, 0x393ab528c0149221, 0x4c78179897d83c46},
	64:   {0x6187eb9089b0ed55, 0x9c6e140a465545e5, 0x90c1971ddb04ce74},
	65:   {0x6928c76ce90422d0, 0xebedf05eeadc28f1, 0x1aee64a1615de88f},
	96:   {0x278a3e12ea046dfb, 0xc57556e9ccb97efa, 0x6e53ab55b4f5558b},
	97:   {0xe7220282dc4e14f4, 0x9b09227e063da5a2, 0x5b3284a61f91e97d},
	120:  {0x956b583a7f1546d6, 0xb206d87e474ec25d, 0x397dbb83bafbaf32},
	128:  {0x85c6174c7ff4c46b, 0x14792fc3af88dc6c, 0x5321a0b64d67b41},
	129:  {0xec7642b431ba3e5a, 0xdd5e74ac6b45f54e, 0xbc30b63382b09a3b},
	144:  {0x28e1e35ff4c0a01, 0x2615894ae020ac91, 0x582a8a72e9d47a4d},
	145:  {0x2a4ed9deff68c7a1, 0xfd1b00537889a95e, 0xd7f26da1552f44a8},
	200:  {0xf42a8864feaf0703, 0xcb0395310643ba0e, 0xdd97e9af3609d9f5},
	240:  {0x375a384d957fe865, 0x65b5be86da5540e7, 0xc92b68e16f83bbb6},
	241:  {0x2e8cd95421c6d02, 0x1da1cb61bcb8a2a1, 0x2e8cd95421c6d02},
	256:  {0x9408a4433b952d71, 0xf1f8a93f50849ac3, 0x9408a4433b952d71},
	257:  {0xd02c25704c5cee8a, 0xfd99e4992437cdf2, 0xd02c25704c5cee8a},
	320:  {0xbfc87c49d73ff872, 0xf349d8935d37c49a, 0xbfc87c49d73ff872},
	511:  {0x5a59555ecf4e4b4c, 0x95ddb455648e3fa, 0x5a59555ecf4e4b4c},
	512:  {0x1059105ad19bfa09, 0x111d5771df64cbcb, 0x1059105ad19bfa09},
	513:  {0xa9cc301be462b64e, 0x2d60903403cf45d4, 0xa9cc301be462b64e},
	1023: {0x26a0a01d1c925c06, 0x24a6b20b01d4b800, 0x26a0a01d1c925c06},
	1024: {0xa870f92984398d22, 0x83885e853bb6640c, 0xa870f92984398d22},
	1025: {0x78c86e91ee939852, 0xe1e508f110763b46, 0x78c86e91ee939852},
	1088: {0x280d4e7cb6579eb6, 0x3ecd3dcac9049e9, 0x280d4e7cb6579eb6},
	2048: {0xdd420471ff96bd00, 0xdf73e0768dd183fa, 0xdd420471ff96bd00},
	2049: {0x62dff343e7dbac9b, 0x95f65d47a8aa2316, 0x62dff343e7dbac9b},
	4999: {0x9b18f31869b4719a, 0x627ca3eb848f66a2, 0x9b18f31869b4719a},
}
