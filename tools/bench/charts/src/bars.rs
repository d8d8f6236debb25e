// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Bars in groups.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::chart::{Chart, COLOURS, GOAL};

/// How much of a group's room its bars take.
const TAKEN: f64 = 0.8;
/// Of the groups' names.
const LEVELS: usize = 3;

pub(crate) fn draw(
    chart: &Chart,
    groups: &[String],
    goals: &[Option<f64>],
    root: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Box<dyn Error>> {
    let top = chart.top(goals.iter().flatten().copied());
    let mut context = ChartBuilder::on(root)
        .caption(&chart.title, ("sans-serif", 22))
        .margin(12)
        .margin_right(50)
        .x_label_area_size(70)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..groups.len() as f64, 0.0..top)?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .y_desc(&chart.unit)
        .label_style(("sans-serif", 14))
        .draw()?;
    let width = TAKEN / chart.series.len() as f64;
    for (index, series) in chart.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let bars = series
            .values
            .iter()
            .enumerate()
            .filter_map(|(group, value)| {
                let left = group as f64 + (1.0 - TAKEN) / 2.0 + index as f64 * width;
                value.map(|value| {
                    Rectangle::new([(left, 0.0), (left + width, value)], colour.filled())
                })
            });
        context
            .draw_series(bars)?
            .label(&series.name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
    }
    let lines = goals.iter().enumerate().filter_map(|(group, goal)| {
        let left = group as f64;
        goal.map(|goal| {
            PathElement::new(
                [(left + 0.05, goal), (left + 0.95, goal)],
                GOAL.stroke_width(2),
            )
        })
    });
    let goals = context.draw_series(lines)?;
    goals
        .label("goal")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 12, y)], GOAL.stroke_width(2)));
    name_groups(&context, root, groups)?;
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}

type Context<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// The groups' names below them, at several levels, since they are longer than a group is wide.
fn name_groups(
    context: &Context<'_, '_>,
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    groups: &[String],
) -> Result<(), Box<dyn Error>> {
    let style = ("sans-serif", 13).into_font().into_text_style(root).pos(
        plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Center,
            plotters::style::text_anchor::VPos::Top,
        ),
    );
    for (group, name) in groups.iter().enumerate() {
        let (x, y) = context.backend_coord(&(group as f64 + 0.5, 0.0));
        let lower = 8 + 20 * (group % LEVELS) as i32;
        root.draw_text(name, &style, (x, y + lower))?;
    }
    Ok(())
}
