// Layouts to begin with.
const EXAMPLES = [
  ['Row-major 8 x 16', { layout: 'S[(8,16):(16,1)]', shape: '8,16' }],
  ['Memory in tiles of 2 x 4', { layout: 'S[(4,2,2,4):(16,4,8,1)]', shape: '8,8', view: 'hardware' }],
  ['Register fragment m8n8', { layout: 'S[(8,4,2):(4@laneid,1@laneid,1@reg)]', shape: '8,8' }],
  ['Accumulator m16n8', { layout: 'S[(2,8,4,2):(2@reg,4@laneid,1@laneid,1@reg)]', shape: '16,8' }],
  ['Warps, replicas and offset', {
    layout: 'S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)] + R[2:4@warpid] + 5@warpid', shape: '8,16',
  }],
  ['Tensor memory, 224 columns in two halves', {
    layout: 'S[(2,128,112):(112@TCol,1@TLane,1@TCol)]', shape: '256,112', bits: 32,
  }],
  ['Scale factors, four copies', { layout: 'S[(32,4):(1@TLane,1@TCol)] + R[4:32@TLane]', shape: '32,4', bits: 8 }],
  ['Mesh of 2 x 2 devices, shard and replica', {
    layout: 'S[(2,4,8):(1@gpuid_y,8@m,1@m)] + R[2:1@gpuid_x]', shape: '8,8',
  }],
  ['Rows of a f16 tile, unswizzled', {
    layout: 'S[(32,64):(64,1)]', shape: '32,64', view: 'banks', access: 'S[(32,64):(1@laneid,1@reg)]',
  }],
  ['Rows of a f16 tile, 128-byte swizzle', {
    layout: 'S[(32,64):(64,1)]', shape: '32,64', view: 'banks', access: 'S[(32,64):(1@laneid,1@reg)]', swizzle: 128,
  }],
  ['Conversion within quads of lanes', {
    layout: 'S[(8,4,2):(4@laneid,1@laneid,1@reg)]', to: 'S[(8,2,4):(4@laneid,1@reg,1@laneid)]', shape: '8,8', bits: 32,
    view: 'conversion',
  }],
  ['Conversion to the transpose', {
    layout: 'S[(8,4,2):(4@laneid,1@laneid,1@reg)]', to: 'S[(4,2,8):(1@laneid,1@reg,4@laneid)]', shape: '8,8', bits: 32,
    view: 'conversion',
  }],
];
