//! Branches of roles: those of neighbours are arms of one `if`, and each counts its threads from its first one.

use tilewright_diag::Diagnostic;
use tilewright_ir::thread::Stmt;
use tilewright_ir::tile::Role;
use tilewright_ir::{Handle, HwIndex};

use super::Printer;
use super::indices::{in_role, indices_in};

impl Printer<'_> {
    /// Prints the branches of roles at the beginning of a list of statements, and returns the rest of it.
    pub(super) fn roles<'s>(&mut self, mut rest: &'s [Stmt]) -> Result<&'s [Stmt], Diagnostic> {
        let mut printed: Vec<Handle<Role>> = Vec::new();
        while let [Stmt::Role { role: handle, body }, after @ ..] = rest
            && !printed.contains(handle)
        {
            let cond = self.of_warps(*handle, &printed);
            let head = match (printed.is_empty(), &cond) {
                (true, Some(cond)) => format!("if ({cond}) {{"),
                (true, None) => "{".to_string(),
                (false, Some(cond)) => format!("}} else if ({cond}) {{"),
                (false, None) => "} else {".to_string(),
            };
            let role = &self.program.roles[*handle];
            let (name, last) = (role.name.clone(), role.end() - 1);
            let warps =
                if role.warps == 1 { format!("warp {last}") } else { format!("warps {} to {last}", role.first) };
            self.line(format_args!("{head}  // role {name}: {warps}"));
            self.depth += 1;
            self.of_role(*handle, body)?;
            self.depth -= 1;
            printed.push(*handle);
            rest = after;
        }
        self.line(format_args!("}}"));
        Ok(rest)
    }

    /// The condition on `warp` for the warps of a role, where those of `others` have branches already; `None` if there is
    /// none left but these.
    fn of_warps(&mut self, role: Handle<Role>, others: &[Handle<Role>]) -> Option<String> {
        let roles = &self.program.roles;
        let Role { first, warps, .. } = roles[role];
        let is_left = |warp: &i64| !others.iter().any(|other| roles[*other].has_warp(*warp));
        let left: Vec<i64> = (0..self.program.warps()).filter(is_left).collect();
        let (least, most) = (left.first().copied().unwrap_or(first), left.last().copied().unwrap_or(first));
        let last = first + warps - 1;
        if left.iter().all(|warp| (first..=last).contains(warp)) {
            return None;
        }
        self.indices.insert(HwIndex::Warp);
        Some(match (first <= least, last >= most) {
            (_, _) if warps == 1 => format!("warp == {first}"),
            (true, _) => format!("warp < {}", last + 1),
            (false, true) => format!("warp >= {first}"),
            (false, false) => format!("warp >= {first} && warp < {}", last + 1),
        })
    }

    /// The statements of a role, after its own indices of thread and warp.
    fn of_role(&mut self, role: Handle<Role>, body: &[Stmt]) -> Result<(), Diagnostic> {
        let Role { first, .. } = self.program.roles[role];
        if first == 0 {
            return self.body(body);
        }
        let used = indices_in(body);
        let own: Vec<String> = used.iter().filter_map(|index| in_role(*index, first)).collect();
        if !own.is_empty() {
            self.line(format_args!("const int {};", own.join(", ")));
        }
        let outer = self.indices.clone();
        self.body(body)?;
        let is_of_cta = |index: &HwIndex| in_role(*index, first).is_none();
        let inside: Vec<HwIndex> = self.indices.iter().copied().filter(is_of_cta).collect();
        self.indices = outer.into_iter().chain(inside).collect();
        Ok(())
    }
}
