//! Atomic operations as C++.
//!
//! Relaxed ones in the scope of the GPU are CUDA's functions; those of other orders and scopes are the compiler's own
//! (CUDA C++ Programming Guide, "Atomic Functions").

use tilewright_ir::thread::Inst;
use tilewright_ir::tile::{MemoryOrder, MemoryOrdering, MemoryScope};
use tilewright_layout::DType;

use super::Values;
use super::functions::Helper;

impl Values<'_> {
    /// The call by which an atomic instruction changes the element `target` of this dtype. Its value is the old element.
    pub(crate) fn atomic(
        &mut self,
        (inst, ordering): (Inst, MemoryOrdering),
        dtype: DType,
        target: &str,
        sources: &[String],
    ) -> String {
        let is_plain = ordering == MemoryOrdering::default();
        let takes_bits = matches!(inst, Inst::AtomicExchange | Inst::AtomicCompareExchange);
        let bits = match dtype {
            // CUDA's minima and maxima alone have a form for `long long`; the compiler's own lack only that of a sum. Other results are
            // those of the unsigned number.
            DType::I64 if is_plain && !matches!(inst, Inst::AtomicMin | Inst::AtomicMax) => Some(UNSIGNED),
            DType::I64 if inst == Inst::AtomicAdd => Some(UNSIGNED),
            DType::F64 if takes_bits && is_plain => Some(Bits { c_type: UNSIGNED.c_type, ..OF_DOUBLE }),
            DType::F64 if takes_bits => Some(OF_DOUBLE),
            // `atomicExch` has a form for `float`.
            DType::F32 if takes_bits && !(is_plain && inst == Inst::AtomicExchange) => Some(OF_FLOAT),
            _ => None,
        };
        let Some(Bits { c_type, to, from }) = bits else {
            return self.atomic_call((inst, ordering), dtype, &format!("&{target}"), &sources.join(", "));
        };
        let place = format!("reinterpret_cast<{c_type}*>(&{target})");
        let converted = |source: &String| if to.is_empty() { source.clone() } else { format!("{to}({source})") };
        let sources: Vec<String> = sources.iter().map(converted).collect();
        let call = self.atomic_call((inst, ordering), dtype, &place, &sources.join(", "));
        if from.is_empty() { call } else { format!("{from}({call})") }
    }

    fn atomic_call(
        &mut self,
        (inst, ordering): (Inst, MemoryOrdering),
        dtype: DType,
        place: &str,
        sources: &str,
    ) -> String {
        let arguments = format!("{place}, {sources}");
        if ordering == MemoryOrdering::default() {
            let function = match (inst, dtype) {
                // CUDA has them in a header.
                (Inst::AtomicAdd, DType::F16) => self.helper(Helper::AddF16),
                (Inst::AtomicAdd, DType::BF16) => self.helper(Helper::AddBf16),
                _ => self.uses.visible(inst.cuda_function()),
            };
            return format!("{function}({arguments})");
        }
        let (order, scope) = (order(ordering.order), scope(ordering.scope));
        let function = match inst {
            Inst::AtomicExchange => "__nv_atomic_exchange_n".to_string(),
            Inst::AtomicCompareExchange => {
                let function = self.helper(Helper::CompareExchange);
                let failed = if ordering.order.acquires() { "__NV_ATOMIC_ACQUIRE" } else { "__NV_ATOMIC_RELAXED" };
                return format!("{function}<{order}, {failed}, {scope}>({arguments})");
            }
            // The row is called `atomic_add`.
            combining => format!("__nv_{}", combining.info().name.replacen("atomic_", "atomic_fetch_", 1)),
        };
        format!("{function}({arguments}, {order}, {scope})")
    }
}

/// An integer in whose place an element is changed.
struct Bits {
    c_type: &'static str,
    /// The function from the element; empty if the conversion is implicit.
    to: &'static str,
    /// The function back.
    from: &'static str,
}

const UNSIGNED: Bits = Bits { c_type: "unsigned long long", to: "", from: "" };
const OF_DOUBLE: Bits = Bits { c_type: "long long", to: "__double_as_longlong", from: "__longlong_as_double" };
const OF_FLOAT: Bits = Bits { c_type: "int", to: "__float_as_int", from: "__int_as_float" };

fn order(order: MemoryOrder) -> &'static str {
    match order {
        MemoryOrder::Relaxed => "__NV_ATOMIC_RELAXED",
        MemoryOrder::Acquire => "__NV_ATOMIC_ACQUIRE",
        MemoryOrder::Release => "__NV_ATOMIC_RELEASE",
        MemoryOrder::AcquireRelease => "__NV_ATOMIC_ACQ_REL",
    }
}

fn scope(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::Cta => "__NV_THREAD_SCOPE_BLOCK",
        MemoryScope::Cluster => "__NV_THREAD_SCOPE_CLUSTER",
        MemoryScope::Gpu => "__NV_THREAD_SCOPE_DEVICE",
        MemoryScope::System => "__NV_THREAD_SCOPE_SYSTEM",
    }
}

/// The function around a compare-and-exchange, which in CUDA writes the old element to where it takes the expected one from.
pub(super) fn compare_exchange(name: &str) -> Vec<String> {
    let lines = [
        "template <int Order, int Failed, int Scope, typename T>".to_string(),
        format!("__device__ __forceinline__ T {name}(T* to, T expected, T desired) {{"),
        "  __nv_atomic_compare_exchange_n(to, &expected, desired, false, Order, Failed, Scope);".to_string(),
        "  return expected;".to_string(),
        "}".to_string(),
        String::new(),
    ];
    lines.to_vec()
}
